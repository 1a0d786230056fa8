// SPDX-License-Identifier: Apache-2.0
//
// Graphs with branches and loops, for the tests and benchmarks of this folder: FlowBuilder keeps
// track of which branch or loop a value lies in, and brings values in from around it, by Switches
// or constant Enters, as clients do. CHECKs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/testing/test_ops.h"

namespace penstock {

class FlowBuilder {
 public:
  using Values = std::vector<Endpoint>;
  using Block = std::function<Values(const Values&)>;
  // Feeds and fetches: nodes that an executor knows, or nodes "feed0", ... and "fetch0", ... by
  // which a client feeds and fetches.
  enum Whom { kExecutor, kClient };
  explicit FlowBuilder(Whom whom = kExecutor) : whom_(whom) {}
  struct Loop {
    std::string name;
    int64_t parallel_iterations = 10;
  };

  // Output 0 of a new node, in the branch or loop that is being built.
  Endpoint Call(const std::string& op, const Values& inputs, Attrs attrs = {});
  // Adds a TestSum or a similar op.
  Endpoint Sum(const std::string& op, const Values& inputs, Attrs attrs = {});
  // One value of either branch; `pred` is a bool.
  Endpoint Cond(Endpoint pred, const std::function<Endpoint()>& then,
                const std::function<Endpoint()>& otherwise);
  // While cond(values) is true: values = body(values).
  Values While(const Loop& loop, const Values& inits,
               const std::function<Endpoint(const Values&)>& cond, const Block& body);
  // i from 0 while i < limit, with more values: body(i, values...) gives the values alone.
  Values For(const Loop& loop, Endpoint limit, const Values& inits, const Block& body);

  Endpoint Feed(int index);
  void Fetch(Endpoint value, int index);
  TestGraph& graph() { return g_; }
  Graph Take() { return g_.Take(); }

 private:
  // A branch, or a loop.
  struct Context {
    Context* outer = nullptr;
    Node* pivot = nullptr;  // runs when the context does
    Endpoint pred;          // of a branch, in `outer`
    int branch = 0;
    std::string frame;  // of a loop
    int64_t parallel_iterations = 1;
    std::map<std::pair<int, int>, Endpoint> brought;  // by node and output
  };

  Endpoint Bring(Endpoint value, Context* to);
  Node* AddNode(const std::string& op, const Values& inputs, Attrs attrs, Context* context,
                const std::vector<Node*>& after = {});
  Endpoint Pass(Endpoint value);
  bool IsConstant(const Endpoint& value) const;
  Endpoint BuildBranch(Endpoint pred, int branch, const std::function<Endpoint()>& build);

  const Whom whom_;
  TestGraph g_;
  Context* here_ = nullptr;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::map<int, Context*> context_of_;  // by node; of its outputs
};

}  // namespace penstock
