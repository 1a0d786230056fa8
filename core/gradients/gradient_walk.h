// SPDX-License-Identifier: Apache-2.0
//
// GradientWalk: walks backwards from ys to xs and builds the gradients. It calls a node's gradient
// function when all consumers of the node on paths between xs and ys have contributed their
// gradients. A loop counts as one node of the frame around it. The gradient of a loop is a backward
// loop; to build it, the walk goes through the body of the forward loop. Private to this folder.
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

  // Returns one gradient per x.
  StatusOr<std::vector<Gradient>> Run(const Outputs& dys);

 private:
  using Key = std::pair<int, int>;  // node, output

  // The unit for which the walk counts consumers: a node, or a loop with all its nodes.
  struct Unit {
    const Node* node = nullptr;
    int frame = 0;  // the loop's frame, if `node` is null
  };

  // Defined in gradient_marks.cc: find the nodes between xs and ys, and the number of consumers of
  // each unit.
  Status CheckArguments(const Outputs& dys) const;
  Status CheckFrames();
  void MarkForward();
  Status MarkBackward();
  Status CountConsumers();
  Status CheckKeptValues() const;
  // If `node` is a StackPop and gradients flow from it to the matching StackPush, returns the push;
  // else null.
  const Node* MatchingPush(const Node& node) const;
  bool IsBetween(const Node* node) const {
    return node->id() < static_cast<int>(between_.size()) && between_[node->id()];
  }
  // Returns true if a gradient flows through input i of `node` to the input's source.
  bool FlowsInto(const Node& node, int i) const;
  // Returns true for the Enters, Merges, Switches and Exits of a loop. The loop's gradient handles
  // them; they have no gradients of their own.
  bool IsLoopStructure(const Node& node) const;
  Unit UnitOf(Endpoint source) const;
  int& PendingCount(const Unit& unit);

  Status Seed(const Outputs& dys);
  Status ProcessReady();
  Status Process(const Node& node);
  StatusOr<std::vector<Gradient>> InputGradients(const Node& node, std::vector<Gradient> dys);
  StatusOr<std::vector<Gradient>> OpGradient(const Node& node, std::vector<Gradient> dys);
  StatusOr<std::vector<Gradient>> MergeGradient(const Node& node, const Gradient& dy);
  StatusOr<std::vector<Gradient>> SwitchGradient(const Node& node,
                                                 const std::vector<Gradient>& dys);
  Status CheckShape(const Node& node, int input, const Gradient& gradient) const;
  // Returns the sum of the contributions of a tensor's consumers; none() if there are none.
  Gradient SumAt(Endpoint output);
  // Adds the gradient that one consumer, input i of `node`, contributes to its source.
  void Contribute(const Node& node, int i, const Gradient& gradient);
  Output ZerosOf(Output forward, DType dtype);

  // Defined in gradient_loop.cc:
  Status ProcessLoop(int frame);
  struct LoopGradient;
  // Adds a variable to the backward loop for the gradient of each loop-carried value.
  Status AddGradientVariables(LoopGradient* loop);
  Status WalkBody(LoopGradient* loop);
  // Sets the next value of each of these variables, and contributes each variable's value after the
  // loop to the gradient of the loop-carried value's initial value.
  Status SetNextGradients(LoopGradient* loop);
  Status AccumulateInvariants(LoopGradient* loop);
  // Returns whether the gradient uses values that the loop `frame` has pushed on stacks for it.
  bool UsesKeptValues(int frame) const;
  void OnLoopGradientBuilt(int frame, BackwardLoop* backward);
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
  absl::flat_hash_map<const Node*, Output> kept_gradients_;  // the stacks of gradients, by push
  LoopGradient* loop_ = nullptr;                             // the loop whose body is being walked
  std::vector<bool> depends_on_xs_;                          // by node id: depends on an x
  std::vector<bool> between_;       // by node id: depends on an x, and a y depends on it
  std::vector<int> pending_nodes_;  // by node id: consumers in between_ that have not contributed
  std::vector<int> pending_loops_;  // the same for loops, by frame
  std::deque<Unit> ready_;
  absl::flat_hash_map<Key, std::vector<Gradient>> parts_;
  absl::flat_hash_map<Key, Gradient> sums_;
};

// The name scope in which gradients are built; the scopes of further calls are "gradients_1", ...
inline constexpr char kGradientScope[] = "gradients";
// Returns true if a component of `name` begins with kGradientScope.
bool InGradientScope(string_view name);

// Returns true if a gradient may flow through a tensor of this type. Returns true for resource
// handles, too, because a handle stands for the value of its resource.
bool CarriesGradient(DType dtype);

}  // namespace penstock
