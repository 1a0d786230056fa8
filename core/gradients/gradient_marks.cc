// SPDX-License-Identifier: Apache-2.0
//
// GradientWalk: finds the nodes between xs and ys, and counts the consumers for which each of these
// nodes waits.
#include "core/gradients/gradient_walk.h"

namespace penstock {

bool CarriesGradient(DType dtype) {
  return IsFloating(dtype) || IsComplex(dtype) || dtype == DType::kResource ||
         dtype == DType::kVariant;
}

Status GradientWalk::CheckArguments(const Outputs& dys) const {
  if (!dys.empty() && dys.size() != ys_.size()) {
    return InvalidArgument("gradients: ", ys_.size(), " ys but ", dys.size(), " dys");
  }
  for (const Outputs* list : {&ys_, &xs_, &dys}) {
    for (const Output& output : *list) {
      if (list == &dys && !output.valid()) continue;
      if (!output.valid()) return InvalidArgument("gradients: not a tensor");
      if (output.sink != &builder_) return InvalidArgument("gradients: tensor of another graph");
    }
  }
  for (size_t i = 0; i < ys_.size(); ++i) {
    if (!IsFloating(ys_[i].dtype()) && !IsComplex(ys_[i].dtype())) {
      return InvalidArgument("gradients: y '", ys_[i].name(), "' is ", Name(ys_[i].dtype()),
                             ", must be of a floating point or complex type");
    }
    if (i < dys.size() && dys[i].valid() && dys[i].dtype() != ys_[i].dtype()) {
      return InvalidArgument("gradients: dy '", dys[i].name(), "' is ", Name(dys[i].dtype()),
                             ", y '", ys_[i].name(), "' is ", Name(ys_[i].dtype()));
    }
  }
  return OkStatus();
}

Status GradientWalk::CheckFrames() {
  if (ys_.empty()) return OkStatus();
  const int base = forward_->FrameOf(ys_[0]);
  forward_->set_base_frame(base);
  for (const Output& y : ys_) {
    if (forward_->FrameOf(y) == base) continue;
    return InvalidArgument("gradients: '", ys_[0].name(), "' and '", y.name(),
                           "' are not in the same loop");
  }
  if (base != 0 && builder_.context() == nullptr) {
    return Unimplemented("gradients: '", ys_[0].name(), "' is in loop '",
                         forward_->frames().frames[base].name, "', which has been built already");
  }
  for (const Output& x : xs_) {
    if (forward_->Encloses(forward_->FrameOf(x), base)) continue;
    return InvalidArgument("gradients: x '", x.name(), "' is inside loop '",
                           forward_->frames().frames[forward_->FrameOf(x)].name, "', y '",
                           ys_[0].name(), "' is not");
  }
  return OkStatus();
}

bool GradientWalk::FlowsInto(const Node& node, int input) const {
  const Endpoint source = node.input(input);
  if (source.node == nullptr || !IsBetween(source.node) ||
      !CarriesGradient(source.node->output_type(source.index).dtype)) {
    return false;
  }
  // In a loop that is still being built, no gradient flows over the back edge: gradients are those
  // within one iteration.
  return !IsLoopBackEdge(*source.node, node) ||
         !forward_->Encloses(forward_->frames().of_node[node.id()], forward_->base_frame());
}

void GradientWalk::MarkForward() {
  std::vector<const Node*> queue;
  const auto reach = [&](const Node* node) {
    if (depends_on_xs_[node->id()]) return;
    depends_on_xs_[node->id()] = true;
    queue.push_back(node);
  };
  for (const Output& x : xs_) reach(builder_.NodeOf(x));
  while (!queue.empty()) {
    const Node* node = queue.back();
    queue.pop_back();
    if (const Node* const pop = kept_.PopOf(*node); pop != nullptr) reach(pop);
    for (const OutEdge& edge : node->out_edges()) {
      if (CarriesGradient(node->output_type(edge.src_index).dtype)) reach(edge.dst);
    }
  }
}

Status GradientWalk::MarkBackward() {
  std::vector<const Node*> queue;
  const auto reach = [&](const Node* node) {
    if (!depends_on_xs_[node->id()] || between_[node->id()]) return;
    between_[node->id()] = true;
    queue.push_back(node);
  };
  for (const Output& y : ys_) reach(builder_.NodeOf(y));
  while (!queue.empty()) {
    const Node* node = queue.back();
    queue.pop_back();
    if (const Node* const push = kept_.PushOf(*node); push != nullptr) reach(push);
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint source = node->input(i);
      if (source.node == nullptr) continue;
      if (CarriesGradient(source.node->output_type(source.index).dtype)) reach(source.node);
    }
  }
  return CountConsumers();
}

bool GradientWalk::IsLoopStructure(const Node& node) const {
  const LoopFrames& frames = forward_->frames();
  switch (FlowOpOf(node)) {
    case FlowOp::kExit:
      return true;
    case FlowOp::kMerge:
      for (const Endpoint& input : node.inputs()) {
        if (input.node != nullptr &&
            (IsLoopBackEdge(*input.node, node) || FlowOpOf(*input.node) == FlowOp::kEnter)) {
          return true;
        }
      }
      return false;
    case FlowOp::kSwitch: {
      const Node* const cond = frames.frames[frames.of_node[node.id()]].loop_cond;
      return cond != nullptr && node.input(1).node == cond;
    }
    default:
      return false;
  }
}

GradientWalk::Unit GradientWalk::UnitOf(Endpoint source) const {
  if (FlowOpOf(*source.node) != FlowOp::kExit) return {.node = source.node};
  return {.frame = forward_->frames().of_node[source.node->id()]};
}

int& GradientWalk::PendingCount(const Unit& unit) {
  return unit.node != nullptr ? pending_nodes_[unit.node->id()] : pending_loops_[unit.frame];
}

Status GradientWalk::CountConsumers() {
  for (const Node* node : builder_.graph().nodes()) {
    if (!IsBetween(node)) continue;
    const bool structure = IsLoopStructure(*node);
    if (structure && FlowOpOf(*node) != FlowOp::kExit &&
        forward_->Encloses(forward_->frames().of_node[node->id()], forward_->base_frame())) {
      return Unimplemented("gradients: y '", ys_[0].name(), "' is in a loop whose variable '",
                           node->name(), "' gets its first value from an x outside of the loop");
    }
    if (structure) continue;
    if (const Node* const push = MatchingPush(*node); push != nullptr) {
      ++pending_loops_[forward_->frames().of_node[push->id()]];
    }
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (!FlowsInto(*node, i)) continue;
      const Node& source = *node->input(i).node;
      if (IsLoopStructure(source) && FlowOpOf(source) == FlowOp::kMerge) {
        return Unimplemented("gradients: '", node->name(), "' takes '", source.name(),
                             "', the variable of a loop, past the loop's condition");
      }
      ++PendingCount(UnitOf(node->input(i)));
    }
  }
  return OkStatus();
}

const Node* GradientWalk::MatchingPush(const Node& node) const {
  const Node* const push = kept_.PushOf(node);
  return push != nullptr && IsBetween(push) && IsBetween(&node) ? push : nullptr;
}

// Checks the values that a loop keeps on stacks and that depend on xs. For each of them, the
// StackPush must be known, and neither the loop that pushes nor the loop that pops may be inside
// another loop, because each run would then have stacks of its own.
Status GradientWalk::CheckKeptValues() const {
  const LoopFrames& frames = forward_->frames();
  const auto once = [&](const Node* node) {
    const int frame = frames.of_node[node->id()];
    return frame != forward_->base_frame() && frames.frames[frame].parent == forward_->base_frame();
  };
  bool kept = false;
  for (const Node* node : builder_.graph().nodes()) {
    if (!depends_on_xs_[node->id()] || !IsStackPush(*node)) continue;
    const Node* const pop = kept_.PopOf(*node);
    kept |= pop == nullptr || !once(node) || !once(pop);
  }
  if (!kept) return OkStatus();
  std::vector<const Node*> queue;
  std::vector<bool> seen(depends_on_xs_.size());
  const auto reach = [&](const Node* node) {
    if (node != nullptr && !seen[node->id()]) queue.push_back(node);
    if (node != nullptr) seen[node->id()] = true;
  };
  for (const Output& y : ys_) reach(builder_.NodeOf(y));
  while (!queue.empty()) {
    const Node* node = queue.back();
    queue.pop_back();
    const Node* const push = kept_.PushOf(*node);
    const bool value = IsStackPop(*node) && node->output_type(0).dtype != DType::kResource &&
                       CarriesGradient(node->output_type(0).dtype);
    if (value && (push == nullptr || !once(push) || !once(node))) {
      return Unimplemented("gradients: of the gradient of a loop, at '", node->name(),
                           "': second derivatives of loops in loops are not supported");
    }
    if (push != nullptr) reach(push);
    for (const Endpoint& input : node->inputs()) reach(input.node);
  }
  return OkStatus();
}

}  // namespace penstock
