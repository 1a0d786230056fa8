// SPDX-License-Identifier: Apache-2.0
//
// ForwardGraph: analyses the graph of which gradients are built: in which loop, and on which side
// of which conditional, each tensor is. ForwardLoop: one loop of that graph. To the loop it adds a
// counter, and a stack for each tensor that the gradient needs, so that the backward loop can go
// through the iterations in reverse order.
//
// Both classes add nodes but change none, so that steps prepared before still compute the same.
// Private to this folder. The builder keeps errors (GraphBuilder::status).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/gradients/branches.h"
#include "core/graph/builder.h"
#include "core/graph/loop_frames.h"

namespace penstock {

class ForwardGraph;

// A loop-carried value.
struct LoopVariable {
  Node* enter = nullptr;
  Node* merge = nullptr;
  Node* branch = nullptr;  // the Switch: output 0 leaves the loop, 1 enters the body
  Node* next = nullptr;
  std::vector<Node*> exits;
};

class ForwardLoop {
 public:
  // Analyses the loop `frame`. Unimplemented if the loop does not have the form that TensorFlow's
  // or Penstock's while_loop builds.
  static StatusOr<std::unique_ptr<ForwardLoop>> Make(ForwardGraph& graph, int frame);

  int frame() const { return frame_; }
  const LoopFrame& info() const;
  std::vector<LoopVariable>& variables() { return variables_; }
  const std::vector<Node*>& invariants() const { return invariants_; }  // constant Enters
  bool swap_memory() const { return swap_memory_; }

  // Returns the last value of a variable, outside of the loop.
  Output ExitOf(LoopVariable& variable);
  // Returns the number of iterations, outside of the loop.
  Output Count();
  // Returns the stack on which each iteration pushes `value`, a tensor of the loop. The returned
  // handle is outside of the loop.
  Output StackOf(Output value);
  // Returns an empty stack for values of the type and shape of `value`. The returned handle is
  // outside of the loop; a step makes the stack if and only if it runs the loop.
  Output NewStack(Output value);

 private:
  ForwardLoop(ForwardGraph& graph, int frame) : graph_(graph), frame_(frame) {}
  Status Collect();
  Status CollectVariable(Node* merge);
  Output Anchor();
  Output Enter(Output value, bool is_constant);
  void AddCounter();

  ForwardGraph& graph_;
  const int frame_;
  std::vector<LoopVariable> variables_;
  std::vector<Node*> invariants_;
  bool swap_memory_ = false;
  Output anchor_;  // outside of the loop; runs if and only if the loop runs
  Output count_, next_number_,
      next_;                // the loop's counter; next_ is the NextIteration of next_number_
  Node* pushed_ = nullptr;  // runs when all values of an iteration have been pushed
  std::map<std::pair<int, int>, Output> stacks_;
};

class ForwardGraph {
 public:
  // Analyses the builder's current graph.
  static StatusOr<std::unique_ptr<ForwardGraph>> Analyze(GraphBuilder& builder);

  GraphBuilder& builder() const { return builder_; }
  const LoopFrames& frames() const { return frames_; }
  const Branches& branches() const { return branches_; }
  const BranchPath& PathOf(Output output) const {
    return branches_.Of({builder_.NodeOf(output), output.index});
  }
  // Returns the frame in which a tensor is; -1 for tensors that were added after the analysis,
  // unless Record was called for them.
  int FrameOf(Output output) const;
  // Returns true if `frame` is `inner`, or encloses it.
  bool Encloses(int frame, int inner) const;
  // Returns the frame in which gradients are built: the frame of the builder's context.
  int base_frame() const { return base_frame_; }
  void set_base_frame(int frame) { base_frame_ = frame; }

  // Records that `output`, an output of a node added to the forward graph, is in `frame` and on the
  // same sides of conditionals as `like`. Returns `output`.
  Output Record(Output output, int frame, Output like);
  StatusOr<ForwardLoop*> Loop(int frame);
  // Returns an output, in the builder's context, of a node that runs if and only if the branch is
  // taken.
  Output PivotOf(const Branch& branch);

 private:
  explicit ForwardGraph(GraphBuilder& builder)
      : builder_(builder), base_context_(builder.context()) {}

  GraphBuilder& builder_;
  GraphBuilder::Context* const base_context_;
  int base_frame_ = 0;
  LoopFrames frames_;
  Branches branches_;
  absl::flat_hash_map<int, int> added_;  // frames of added nodes
  std::map<int, std::unique_ptr<ForwardLoop>> loops_;
  using PivotKey = std::pair<GraphBuilder::Context*, std::pair<std::pair<int, int>, int>>;
  std::map<PivotKey, Output> pivots_;
};

}  // namespace penstock
