// SPDX-License-Identifier: Apache-2.0
#include "core/gradients/backward_loop.h"

#include "core/op/gradient.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

bool IsInvariant(const Node& node) {
  const bool* const constant = node.attr<bool>("is_constant");
  return FlowOpOf(node) == FlowOp::kEnter && constant != nullptr && *constant;
}

}  // namespace

BackwardLoop::BackwardLoop(ForwardGraph& graph, ForwardLoop& forward, std::string name)
    : LoopContext(graph.builder(), std::move(name),
                  {.parallel_iterations = forward.info().parallel_iterations,
                   .swap_memory = forward.swap_memory()}),
      graph_(graph),
      forward_(forward) {
  AddCounter();
}

void BackwardLoop::AddCounter() {
  const Output count = forward_.Count();
  if (!count.valid()) return;
  Output one;
  {
    const auto after_loop_scope = builder_.ControlDependencies({count});
    one = Constant(builder_, Tensor::Scalar<int32_t>(1));
  }
  const Output start = Enter(count);
  const auto inside = builder_.ContextScope(this);
  const Output number = CallN("Merge", {Outputs{start, start}})[0];
  set_pivot(number);
  cond_ = Call("LoopCond", {GreaterEqual(number, one)});
  const Outputs sides = AddSwitch(number, cond_);
  number_ = sides[1];
  zero_ = sides[0];
  const Output less = Call("Sub", {number_, one});
  set_pivot(less);
  const Output popped = CallIn(builder_, "ControlTrigger", {});
  const auto after = builder_.ControlDependencies({popped});
  const Output next = Call("NextIteration", {less});
  if (!builder_.status().ok()) return;
  popped_ = builder_.NodeOf(popped);
  const Status closed =
      builder_.mutable_graph().SetInput(builder_.NodeOf(number), 1, {builder_.NodeOf(next), 0});
  if (!closed.ok()) builder_.Fail(closed);
}

BackwardLoop::Variable BackwardLoop::AddVariable(Output initial) {
  const Output start = Enter(initial);
  const auto inside = builder_.ContextScope(this);
  if (!start.valid()) return {};
  const Output merged = CallN("Merge", {Outputs{start, start}})[0];
  const Outputs sides = AddSwitch(merged, cond_);
  if (!builder_.status().ok()) return {};
  return {.now = sides[1], .last = sides[0], .merge = builder_.NodeOf(merged)};
}

Output BackwardLoop::Close(const Variable& variable, Output next) {
  const auto inside = builder_.ContextScope(this);
  if (!next.valid() || variable.merge == nullptr) return {&builder_, -1, 0};
  const Output next_iteration = Call("NextIteration", {next});
  const Output exit = Call("Exit", {variable.last});
  if (!builder_.status().ok()) return exit;
  const Status closed =
      builder_.mutable_graph().SetInput(variable.merge, 1, {builder_.NodeOf(next_iteration), 0});
  if (!closed.ok()) builder_.Fail(closed);
  return exit;
}

bool BackwardLoop::InForwardLoop(Output output) const {
  return output.valid() && !Owns(output.node) && graph_.FrameOf(output) == forward_.frame();
}

Output BackwardLoop::AddEntry(Output outside) {
  if (!InForwardLoop(outside)) return LoopContext::AddEntry(outside);
  const auto unordered = builder_.ClearControlDependencies();
  const Node& node = *builder_.NodeOf(outside);
  if (IsInvariant(node)) {
    return Import(builder_.OutputOf(node.input(0).node, node.input(0).index));
  }
  if (node.op().is_constant) return Constant(builder_, *node.attr<Tensor>("value"));
  return PopMatching(forward_.StackOf(outside), outside);
}

Output BackwardLoop::End() {
  const auto inside = builder_.ContextScope(this);
  if (!end_.valid()) end_ = Call("Exit", {zero_});
  return end_;
}

void BackwardLoop::Push(Output stack, Output value) {
  if (!stack.valid() || !value.valid()) return;
  // As in the forward loop, the push of an iteration runs after that of the iteration before.
  const auto order_scope = builder_.ControlDependencies({pivot()});
  const auto colocation_scope = builder_.ColocateWith(stack);
  const Output push =
      CallIn(builder_, "StackPushV2", {stack, value}, {{"swap_memory", forward_.swap_memory()}});
  if (push.valid()) builder_.mutable_graph().AddControlEdge(builder_.NodeOf(push), popped_);
}

Output BackwardLoop::PopMatching(Output stack, Output value) {
  if (!stack.valid()) return stack;
  const BranchPath& path = graph_.PathOf(value);
  Output handle = stack;
  if (!path.empty()) {
    // If the forward iteration took the other side, it pushed nothing, so pop only on this side.
    const Endpoint predicate = path.back().predicate;
    handle = AddSwitch(stack, builder_.OutputOf(predicate.node, predicate.index))[path.back().side];
  }
  const auto colocation_scope = builder_.ColocateWith(stack);
  Attrs attrs = {{"elem_type", value.dtype()}};
  if (value.shape().known_rank()) attrs[kElementShapeAttr] = value.shape();
  const Output popped = Call("StackPopV2", {handle}, std::move(attrs));
  if (popped.valid()) builder_.mutable_graph().AddControlEdge(builder_.NodeOf(popped), popped_);
  return popped;
}

Output BackwardLoop::ShapeOfForward(Output value, DType type) {
  const PartialShape known = value.shape();
  if (known.fully_known()) {
    const Shape shape = known.ToShape();
    if (type == DType::kInt64) {
      return Constant(builder_,
                      Tensor::Vector<int64_t>({shape.dims().begin(), shape.dims().end()}));
    }
    return Constant(builder_, Tensor::Vector<int32_t>({shape.dims().begin(), shape.dims().end()}));
  }
  Output& shape = shapes_[{value.node, value.index}];  // shape in the forward loop, as int64
  if (!shape.valid()) {
    const auto bare_scope = builder_.BareScope();
    const auto colocation_scope = builder_.ColocateWith(value);
    shape = graph_.Record(ShapeOf(value, DType::kInt64), forward_.frame(), value);
  }
  return Cast(Import(shape), type);
}

int BackwardLoop::FromShapeOnly(const GraphBuilder::NewNode& node, Output value) {
  const auto unordered = builder_.ClearControlDependencies();
  // Compares names of ops, because gradient functions get shapes by exactly these ops.
  if (node.op == "Shape") {
    const auto type = node.attrs.find("out_type");
    const EdgeType* given = type == node.attrs.end() ? nullptr : type->second.get<EdgeType>();
    return ShapeOfForward(value, given == nullptr ? DType::kInt32 : given->dtype).node;
  }
  const bool fills = node.op == "ZerosLike" || node.op == "OnesLike";
  const bool number = IsFloating(value.dtype()) || IsComplex(value.dtype());
  if (!fills || !number) return -1;
  const Output element = ConstantLike(value, node.op == "OnesLike" ? 1 : 0);
  const Output shape = ShapeOfForward(value, DType::kInt32);
  const BranchPath& path = graph_.PathOf(value);
  if (path.empty()) return Fill(shape, element).node;
  const auto branch_scope = builder_.ControlDependencies({graph_.PivotOf(path.back())});
  return Fill(shape, element).node;
}

Status BackwardLoop::Adapt(GraphBuilder::NewNode* node) {
  if (node->inputs.size() == 1 && node->inputs[0].outputs.size() == 1) {
    const Output value = node->inputs[0].outputs[0];
    if (InForwardLoop(value) && !IsInvariant(*builder_.NodeOf(value))) {
      node->existing = FromShapeOnly(*node, value);
      RETURN_IF_ERROR(builder_.status());
      if (node->existing >= 0) return OkStatus();
    }
  }
  return LoopContext::Adapt(node);
}

}  // namespace penstock
