// SPDX-License-Identifier: Apache-2.0
//
// BackwardLoop: the loop that computes the gradient of another one, as many iterations, last one
// first. A tensor of the forward loop that is used in here is taken from the stack on which the
// forward loop leaves it; where only its shape matters, only its shape is kept. Private to this
// folder; errors are sticky in the builder.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/gradients/forward_graph.h"
#include "core/graph/flow_context.h"

namespace penstock {

class BackwardLoop final : public LoopContext {
 public:
  // To be made where the result is wanted. `name` is unique in the graph.
  BackwardLoop(ForwardGraph& graph, ForwardLoop& forward, std::string name);

  struct Variable {
    Output now;   // in the body
    Output last;  // leads out
    Node* merge = nullptr;
  };
  Variable AddVariable(Output initial);
  // Says what `variable` is in the next iteration; returns its last value, as seen outside.
  Output Close(const Variable& variable, Output next);
  // Counts from the number of iterations down to 1.
  Output number() const { return number_; }
  // As seen outside: there when all iterations have ended.
  Output End();
  // In the body: each iteration leaves `value` on `stack`, for another loop to take.
  void Push(Output stack, Output value);
  // In the body: what the iteration that this one goes back to has left on `stack`, which is as
  // often there as `like`, a tensor of the forward loop.
  Output PopLike(Output stack, Output like);

  Status Adapt(GraphBuilder::NewNode* node) override;

 protected:
  Output Lead(Output outside) override;

 private:
  void AddCounter();
  bool InForwardLoop(Output output) const;
  Output ShapeOfForward(Output value, DType type);
  // The node that does what `node` is to do, without `value` itself; -1: there is none.
  int WithoutValue(const GraphBuilder::NewNode& node, Output value);

  ForwardGraph& graph_;
  ForwardLoop& forward_;
  Output cond_, number_, zero_, end_;
  Node* popped_ = nullptr;  // runs when all of an iteration's values have been taken
  std::map<std::pair<int, int>, Output> shapes_;
};

}  // namespace penstock
