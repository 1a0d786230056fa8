// SPDX-License-Identifier: Apache-2.0
#include "core/gradients/gradient_walk.h"

#include "core/base/check.h"
#include "core/gradients/gradients.h"

namespace penstock {

Status GradientWalk::Seed(const Outputs& dys) {
  for (size_t i = 0; i < ys_.size(); ++i) {
    Output dy = i < dys.size() ? dys[i] : Output();
    if (!dy.valid()) {
      dy = OnesLike(ys_[i]);
    } else if (InGradientScope(dy.name())) {
      // The Identity has a name in this walk's scope. kernels/tensor_array distinguishes the arrays
      // of different gradients by such names, and the caller's `dys` have other names.
      dy = Identity(dy);
    }
    parts_[{ys_[i].node, ys_[i].index}].push_back(dy);
  }
  for (const Output& y : ys_) {
    const Node* const node = builder_.NodeOf(y);
    const Unit unit = UnitOf({const_cast<Node*>(node), y.index});
    // Set the count of a queued unit to -1, so that another y among its outputs does not queue it
    // again.
    if (IsBetween(node) && PendingCount(unit) == 0) {
      PendingCount(unit) = -1;
      ready_.push_back(unit);
    }
  }
  return builder_.status();
}

Gradient GradientWalk::SumAt(Endpoint output) {
  const Key key{output.node->id(), output.index};
  const auto it = parts_.find(key);
  if (it != parts_.end()) {
    const std::vector<Gradient> parts = std::move(it->second);
    parts_.erase(it);
    sums_[key] = SumGradients(parts);
  }
  const auto sum = sums_.find(key);
  return sum == sums_.end() ? Gradient() : sum->second;
}

void GradientWalk::Contribute(const Node& node, int i, const Gradient& gradient) {
  if (!FlowsInto(node, i)) return;
  const Endpoint source = node.input(i);
  if (!gradient.none()) parts_[{source.node->id(), source.index}].push_back(gradient);
  const Unit unit = UnitOf(source);
  if (--PendingCount(unit) == 0) ready_.push_back(unit);
}

Output GradientWalk::ZerosOf(Output forward, DType dtype) {
  if (forward.dtype() != DType::kResource) return ZerosLike(forward);
  const Output zero = Cast(Constant(builder_, Tensor::Scalar(0.0)), dtype);
  return Fill(Call("VariableShape", {forward}), zero);
}

StatusOr<std::vector<Gradient>> GradientWalk::MergeGradient(const Node& node, const Gradient& dy) {
  int sides[2];
  const StatusOr<Endpoint> predicate = forward_->branches().ConditionalEndedBy(node, sides);
  if (!predicate.ok()) return Unimplemented("gradients: ", predicate.status().message());
  const Outputs split = AddSwitch(Dense(dy), builder_.OutputOf(predicate->node, predicate->index));
  return std::vector<Gradient>{split[sides[0]], split[sides[1]]};
}

// Returns a Merge of the gradients of the two sides, with zeros for a side without a gradient.
StatusOr<std::vector<Gradient>> GradientWalk::SwitchGradient(const Node& node,
                                                             const std::vector<Gradient>& dys) {
  if (dys.size() != 2) {
    return Unimplemented("gradients: node '", node.name(), "': op ", node.op_name());
  }
  const Endpoint predicate = node.input(1);
  const DType dtype = (dys[0].none() ? dys[1] : dys[0]).values.dtype();
  Outputs sides;
  for (int side = 0; side < 2; ++side) {
    const Output dy =
        dys[side].none() ? ZerosOf(builder_.OutputOf(&node, side), dtype) : Dense(dys[side]);
    // Without this control edge, a gradient that depends on no value of its side would be alive
    // even if the other side was taken.
    const auto branch_scope = builder_.ControlDependencies({forward_->PivotOf({predicate, side})});
    sides.push_back(Identity(dy));
  }
  return std::vector<Gradient>{CallN("Merge", {sides})[0], {}};
}

StatusOr<std::vector<Gradient>> GradientWalk::OpGradient(const Node& node,
                                                         std::vector<Gradient> dys) {
  if (!node.op().gradient) {
    return Unimplemented("gradients: node '", node.name(), "': op ", node.op_name(),
                         " has no gradient");
  }
  Outputs inputs, outputs;
  for (const Endpoint& input : node.inputs()) {
    inputs.push_back(builder_.OutputOf(input.node, input.index));
  }
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(builder_.OutputOf(&node, i));
  return node.op().gradient(
      GradientScope(builder_, node.op(), node.attrs(), node.name(), inputs, outputs, dys));
}

StatusOr<std::vector<Gradient>> GradientWalk::InputGradients(const Node& node,
                                                             std::vector<Gradient> dys) {
  const auto scope = builder_.NameScope(StrCat(node.name(), "_grad"));
  // Errors in a gradient name the source line of the forward node, which is more useful than the
  // line that calls AddGradients.
  const auto line = builder_.SourceLineScope(builder_.SourceLineOf(node));
  StatusOr<std::vector<Gradient>> result;
  switch (FlowOpOf(node)) {
    case FlowOp::kEnter:  // only for a loop that is being built; ProcessLoop handles others
      result = {dys[0]};
      break;
    case FlowOp::kMerge:
      result = MergeGradient(node, dys[0]);
      break;
    case FlowOp::kSwitch:
      result = SwitchGradient(node, dys);
      break;
    default:
      result = OpGradient(node, std::move(dys));
  }
  RETURN_IF_ERROR(Annotate(builder_.status(), StrCat("gradient of node '", node.name(), "'")));
  if (result.ok() && static_cast<int>(result->size()) != node.num_inputs()) {
    return Internal("gradient of op ", node.op_name(), " gave ", result->size(), " values for ",
                    node.num_inputs(), " inputs");
  }
  return result;
}

Status GradientWalk::CheckShape(const Node& node, int input, const Gradient& gradient) const {
  const Endpoint source = node.input(input);
  if (gradient.sparse() || node.input_type(input).dtype == DType::kResource) return OkStatus();
  const PartialShape wanted = builder_.output_shape(source.node->id(), source.index);
  const PartialShape found = gradient.values.shape();
  if (found.Compatible(wanted)) return OkStatus();
  return Internal("gradient of node '", node.name(), "' (op ", node.op_name(), ") for input ",
                  input, " has shape ", found.ToString(), ", the input has ", wanted.ToString());
}

Status GradientWalk::Process(const Node& node) {
  if (IsStackPush(node)) {
    std::vector<Gradient> parts = {SumAt({const_cast<Node*>(&node), 0}), KeptGradient(node)};
    std::erase_if(parts, [](const Gradient& part) { return part.none(); });
    Contribute(node, 1, parts.empty() ? Gradient() : SumGradients(parts));
    return builder_.status();
  }
  if (const Node* const push = MatchingPush(node); push != nullptr) {
    const Gradient dy = SumAt({const_cast<Node*>(&node), 0});
    if (!dy.none()) KeepGradient(*push, Dense(dy));
    return builder_.status();
  }
  std::vector<Gradient> dys;
  bool any = false, wanted = false;
  for (int i = 0; i < node.num_outputs(); ++i) {
    dys.push_back(SumAt({const_cast<Node*>(&node), i}));
    any |= !dys.back().none();
  }
  // ProcessLoop handles the Enters and the other nodes of a loop's structure.
  const FlowOp op = FlowOpOf(node);
  const bool inner =
      !forward_->Encloses(forward_->frames().of_outputs[node.id()], forward_->base_frame());
  if (IsLoopStructure(node) || (op == FlowOp::kEnter && inner)) return builder_.status();
  for (int i = 0; i < node.num_inputs(); ++i) wanted |= FlowsInto(node, i);
  std::vector<Gradient> dxs(node.num_inputs());
  if (any && wanted) {
    ASSIGN_OR_RETURN(dxs, InputGradients(node, std::move(dys)));
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (FlowsInto(node, i) && !dxs[i].none()) RETURN_IF_ERROR(CheckShape(node, i, dxs[i]));
    Contribute(node, i, dxs[i]);
  }
  return OkStatus();
}

Status GradientWalk::ProcessReady() {
  while (!ready_.empty()) {
    const Unit unit = ready_.front();
    ready_.pop_front();
    RETURN_IF_ERROR(unit.node != nullptr ? Process(*unit.node) : ProcessLoop(unit.frame));
  }
  return builder_.status();
}

StatusOr<std::vector<Gradient>> GradientWalk::Run(const Outputs& dys) {
  RETURN_IF_ERROR(builder_.status());
  RETURN_IF_ERROR(CheckArguments(dys));
  ASSIGN_OR_RETURN(forward_, ForwardGraph::Analyze(builder_));
  RETURN_IF_ERROR(CheckFrames());
  kept_ = KeptValues::Find(builder_.graph());
  const int num_nodes = builder_.graph().max_id();
  depends_on_xs_.resize(num_nodes);
  between_.resize(num_nodes);
  pending_nodes_.resize(num_nodes);
  pending_loops_.resize(forward_->frames().frames.size());
  MarkForward();
  RETURN_IF_ERROR(MarkBackward());
  RETURN_IF_ERROR(CheckKeptValues());
  RETURN_IF_ERROR(Seed(dys));
  RETURN_IF_ERROR(ProcessReady());
  std::vector<Gradient> result;
  for (const Output& x : xs_) {
    const auto it = sums_.find(Key{x.node, x.index});
    result.push_back(it == sums_.end() ? Gradient() : it->second);
  }
  return result;
}

}  // namespace penstock
