// SPDX-License-Identifier: Apache-2.0
//
// ForwardGraph: what gradients must know of the graph that they are gradients of: which loop and
// which side of which conditional a tensor is in. ForwardLoop: one of its loops, and what is added
// to it so that the loop that computes its gradient can go through the iterations backwards: a
// counter, and a stack for each tensor that is needed again.
//
// Only nodes are added, none is changed: a graph that has run before goes on running as it did.
// Private to this folder; errors are sticky in the builder.
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
  Node* branch = nullptr;  // the Switch: 0 leads out, 1 into the body
  Node* next = nullptr;
  std::vector<Node*> exits;
};

class ForwardLoop {
 public:
  // Unimplemented if the loop is not of the form that TensorFlow's while_loop and ours build.
  static StatusOr<std::unique_ptr<ForwardLoop>> Make(ForwardGraph& graph, int frame);

  int frame() const { return frame_; }
  const LoopFrame& info() const;
  std::vector<LoopVariable>& variables() { return variables_; }
  const std::vector<Node*>& invariants() const { return invariants_; }  // constant Enters
  bool swap_memory() const { return swap_memory_; }

  // The last value of a variable, as seen outside.
  Output ExitOf(LoopVariable& variable);
  // How many iterations there were, as seen outside.
  Output Count();
  // As seen outside: the stack on which each iteration leaves `value`, a tensor in this loop.
  Output StackOf(Output value);
  // As seen outside: an empty stack for what is like `value`, there where and if the loop is.
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
  Output anchor_;                      // runs where, and only if, the loop does
  Output count_, next_number_, next_;  // next_number_ + NextIteration = next_
  Node* pushed_ = nullptr;             // runs when all of an iteration's values are on their stacks
  std::map<std::pair<int, int>, Output> stacks_;
};

class ForwardGraph {
 public:
  // As the builder's graph is now.
  static StatusOr<std::unique_ptr<ForwardGraph>> Analyze(GraphBuilder& builder);

  GraphBuilder& builder() const { return builder_; }
  const LoopFrames& frames() const { return frames_; }
  const Branches& branches() const { return branches_; }
  const BranchPath& PathOf(Output output) const {
    return branches_.Of({builder_.NodeOf(output), output.index});
  }
  // The frame that a tensor is in; -1 for what gradients have added to themselves.
  int FrameOf(Output output) const;
  // True if `frame` is `inner`, or around it.
  bool Encloses(int frame, int inner) const;
  // The one that gradients are built in: that of the builder's context.
  int base_frame() const { return base_frame_; }
  void set_base_frame(int frame) { base_frame_ = frame; }

  // For nodes that are added to the forward graph: `output` is in `frame`, on the path of `like`.
  Output Record(Output output, int frame, Output like);
  StatusOr<ForwardLoop*> Loop(int frame);
  // In the builder's context: runs where, and only if, a branch does.
  Output PivotOf(const Branch& branch);

 private:
  explicit ForwardGraph(GraphBuilder& builder)
      : builder_(builder), base_context_(builder.context()) {}

  GraphBuilder& builder_;
  GraphBuilder::Context* const base_context_;
  int base_frame_ = 0;
  LoopFrames frames_;
  Branches branches_;
  absl::flat_hash_map<int, int> added_;  // frames of nodes that were added
  std::map<int, std::unique_ptr<ForwardLoop>> loops_;
  using PivotKey = std::pair<GraphBuilder::Context*, std::pair<std::pair<int, int>, int>>;
  std::map<PivotKey, Output> pivots_;
};

}  // namespace penstock
