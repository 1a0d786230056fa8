// SPDX-License-Identifier: Apache-2.0
//
// GradientWalk: one walk backwards from ys to xs. A node's gradient function is called once all of
// its consumers on paths between xs and ys have said what they contribute. A loop counts as one
// node of the frame around it: its gradient is another loop, inside of which the walk goes through
// the body. Private to this folder.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/gradients/backward_loop.h"
#include "core/gradients/forward_graph.h"
#include "core/gradients/kept_values.h"
#include "core/graph/builder.h"
#include "core/graph/loop_frames.h"
#include "core/op/gradient.h"

namespace penstock {

class GradientWalk {
 public:
  GradientWalk(GraphBuilder& builder, const Outputs& ys, const Outputs& xs)
      : builder_(builder), ys_(ys), xs_(xs) {}

  // One per x.
  StatusOr<std::vector<Gradient>> Run(const Outputs& dys);

 private:
  using Key = std::pair<int, int>;  // node, output

  // The unit that the walk waits for: a node, or a loop with all its nodes.
  struct Unit {
    const Node* node = nullptr;
    int frame = 0;  // if node is null
  };

  // gradient_marks.cc: which nodes matter, and how many consumers each unit has.
  Status CheckArguments(const Outputs& dys) const;
  Status CheckFrames();
  void MarkForward();
  Status MarkBackward();
  Status CountConsumers();
  Status CheckKeptValues() const;
  // The push whose value `node`, a pop, gives, if gradients go from here to there.
  const Node* KeptBy(const Node& node) const;
  bool Between(const Node* node) const {
    return node->id() < static_cast<int>(between_.size()) && between_[node->id()];
  }
  // True if a gradient goes from input i of `node` to what it comes from.
  bool FlowsInto(const Node& node, int i) const;
  // Enters, Merges and Switches of loops, Exits: what the loop's gradient sees to.
  bool IsLoopStructure(const Node& node) const;
  Unit UnitOf(Endpoint source) const;
  int& Pending(const Unit& unit);

  Status Seed(const Outputs& dys);
  Status ProcessReady();
  Status Process(const Node& node);
  StatusOr<std::vector<Gradient>> InputGradients(const Node& node, std::vector<Gradient> dys);
  StatusOr<std::vector<Gradient>> OpGradient(const Node& node, std::vector<Gradient> dys);
  StatusOr<std::vector<Gradient>> MergeGradient(const Node& node, const Gradient& dy);
  StatusOr<std::vector<Gradient>> SwitchGradient(const Node& node,
                                                 const std::vector<Gradient>& dys);
  Status CheckShape(const Node& node, int input, const Gradient& gradient) const;
  // Sums the contributions of a tensor's consumers; none if there were none.
  Gradient SumAt(Endpoint output);
  // Adds the gradient that one consumer, input i of `node`, contributes to its source.
  void Contribute(const Node& node, int i, const Gradient& gradient);
  Output ZerosOf(Output forward, DType dtype);

  // gradient_loop.cc
  Status ProcessLoop(int frame);
  struct LoopGradient;
  Status OpenVariables(LoopGradient* loop);
  Status WalkBody(LoopGradient* loop);
  Status CloseVariables(LoopGradient* loop);
  Status AccumulateInvariants(LoopGradient* loop);
  // Whether the gradient has taken values that the loop `frame` has kept for it.
  bool TakesKept(int frame) const;
  void KeptAreProcessed(int frame, BackwardLoop* backward);
  void KeepGradient(const Node& push, Output dy);
  Gradient KeptGradient(const Node& push);
  Output AccumulateDense(LoopGradient& loop, Output source, Output each);
  Gradient AccumulateSparse(LoopGradient& loop, Output source, const Gradient& each);
  Output GatherRows(LoopGradient& loop, Output rows, Output none);

  GraphBuilder& builder_;
  const Outputs& ys_;
  const Outputs& xs_;
  std::unique_ptr<ForwardGraph> forward_;
  KeptValues kept_;
  absl::flat_hash_map<const Node*, Output> kept_gradients_;  // stacks, by push
  LoopGradient* loop_ = nullptr;                             // whose body is being walked
  std::vector<bool> below_xs_;                               // by node id: depends on an x
  std::vector<bool> between_;                                // and a y depends on it
  std::vector<int> pending_nodes_;  // consumers in between_ that have not contributed yet
  std::vector<int> pending_loops_;  // by frame
  std::deque<Unit> ready_;
  absl::flat_hash_map<Key, std::vector<Gradient>> parts_;
  absl::flat_hash_map<Key, Gradient> sums_;
};

// The name scope that gradients are built in; true if a part of `name` is one.
inline constexpr char kGradientScope[] = "gradients";
bool InGradientScope(string_view name);

// Through what a gradient may flow. A resource stands for the value that it holds.
bool CarriesGradient(DType dtype);

}  // namespace penstock
