// SPDX-License-Identifier: Apache-2.0
//
// BackwardLoop: the loop that computes the gradient of a forward loop. It has one iteration for
// each iteration of the forward loop, in reverse order. If the backward loop uses a tensor of the
// forward loop, the forward loop pushes the tensor on a stack, and the backward loop pops it; if it
// uses only the tensor's shape, the stack holds only the shape. Private to this folder. The builder
// keeps errors (GraphBuilder::status).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/gradients/forward_graph.h"
#include "core/graph/flow_context.h"

namespace penstock {

class BackwardLoop final : public LoopContext {
 public:
  // Construct this in the context that uses the loop's results. `name` is unique in the graph.
  BackwardLoop(ForwardGraph& graph, ForwardLoop& forward, std::string name);

  struct Variable {
    Output now;   // the value in the body, in the current iteration
    Output last;  // the value after the loop
    Node* merge = nullptr;
  };
  Variable AddVariable(Output initial);
  // Sets the value of `variable` in the next iteration. Returns the variable's value after the
  // loop, as an output outside of the loop.
  Output Close(const Variable& variable, Output next);
  // Returns the counter, which counts down from the number of iterations to 1.
  Output number() const { return number_; }
  // Returns an output outside of the loop that is computed when all iterations have ended.
  Output End();
  // In the body: pushes `value` on `stack` in each iteration. Another loop pops the values.
  void Push(Output stack, Output value);
  // In the body: pops the value that the matching forward iteration pushed on `stack`. `stack`
  // exists under the same branch conditions as `like`, a tensor of the forward loop.
  Output PopMatching(Output stack, Output like);

  Status Adapt(GraphBuilder::NewNode* node) override;

 protected:
  Output AddEntry(Output outside) override;

 private:
  void AddCounter();
  bool InForwardLoop(Output output) const;
  Output ShapeOfForward(Output value, DType type);
  // Returns the id of a node that computes the same value as `node` from the shape of `value`
  // instead of `value` itself; -1 if that is not possible.
  int FromShapeOnly(const GraphBuilder::NewNode& node, Output value);

  ForwardGraph& graph_;
  ForwardLoop& forward_;
  Output cond_, number_, zero_, end_;
  Node* popped_ = nullptr;  // runs when all values of an iteration have been popped
  std::map<std::pair<int, int>, Output> shapes_;
};

}  // namespace penstock
