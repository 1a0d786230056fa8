// SPDX-License-Identifier: Apache-2.0
//
// Graphs with branches and loops, for the tests and benchmarks of this folder: FlowBuilder tracks
// the branch or loop that a value belongs to, and imports values from outside by Switches or
// constant Enters, as clients do. CHECKs on errors.
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
  // The form of feeds and fetches: _Feed and _Fetch nodes for an executor, or nodes "feed0", ...
  // and "fetch0", ... that a client feeds and fetches.
  enum FeedForm { kExecutor, kClient };
  explicit FlowBuilder(FeedForm form = kExecutor) : form_(form) {}
  struct Loop {
    std::string name;
    int64_t parallel_iterations = 10;
  };

  // Returns output 0 of a new node in the current branch or loop.
  Endpoint Call(const std::string& op, const Values& inputs, Attrs attrs = {});
  // Adds a TestSum or a similar op, and sets its attribute N to the number of inputs.
  Endpoint Sum(const std::string& op, const Values& inputs, Attrs attrs = {});
  // Returns the value of the branch that `pred`, a bool, selects.
  Endpoint Cond(Endpoint pred, const std::function<Endpoint()>& then,
                const std::function<Endpoint()>& otherwise);
  // Repeats values = body(values) while cond(values) is true.
  Values While(const Loop& loop, const Values& inits,
               const std::function<Endpoint(const Values&)>& cond, const Block& body);
  // Counts i from 0 while i < limit, with further loop-carried values: body(i, values...) returns
  // only these.
  Values For(const Loop& loop, Endpoint limit, const Values& inits, const Block& body);

  Endpoint Feed(int index);
  void Fetch(Endpoint value, int index);
  TestGraph& graph() { return g_; }
  Graph Take() { return g_.Take(); }

 private:
  // A branch, or a loop.
  struct Context {
    Context* outer = nullptr;
    Node* pivot = nullptr;  // a node that runs if and only if the branch or the iteration does
    Endpoint pred;          // if a branch: its predicate, in `outer`
    int branch = 0;
    std::string frame;  // if a loop: its frame name
    int64_t parallel_iterations = 1;
    std::map<std::pair<int, int>, Endpoint> imported;  // imported values, by node and output
  };

  Endpoint Import(Endpoint value, Context* to);
  Node* AddNode(const std::string& op, const Values& inputs, Attrs attrs, Context* context,
                const std::vector<Node*>& after = {});
  Endpoint Pass(Endpoint value);
  bool IsConstant(const Endpoint& value) const;
  Endpoint BuildBranch(Endpoint pred, int branch, const std::function<Endpoint()>& build);

  const FeedForm form_;
  TestGraph g_;
  Context* here_ = nullptr;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::map<int, Context*> context_of_;  // by node: the context of its outputs
};

}  // namespace penstock
