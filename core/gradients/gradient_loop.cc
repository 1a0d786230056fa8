// SPDX-License-Identifier: Apache-2.0
//
// GradientWalk: the gradient of a loop. The gradient of each loop-carried value is a variable of
// the backward loop: this variable starts as the gradient of the loop's result, and each iteration
// propagates it back through the body. The gradients of invariants, which each iteration computes,
// are summed over the iterations.
#include <algorithm>
#include <utility>

#include "core/gradients/gradient_walk.h"
#include "core/gradients/gradients.h"

namespace penstock {
namespace {

// Returns the shape of one of `rows`.
PartialShape RowShape(Output rows) {
  const PartialShape known = rows.shape();
  PartialShape shape;
  if (!known.known_rank() || known.rank() == 0) return shape;
  shape = PartialShape::Scalar();
  for (const int64_t dim : known.dims().subspan(1)) shape.AddDim(dim);
  return shape;
}

// Returns `value` with the static shape `shape`. In `shape`, dimensions that may differ among
// iterations are unknown.
Output WithStaticShape(Output value, const PartialShape& shape) {
  const PartialShape known = value.shape();
  const StatusOr<PartialShape> both = known.Merge(shape);
  if (!both.ok() || *both == shape) return value;
  return Call("PlaceholderWithDefault", {value}, {{"shape", shape}});
}

}  // namespace

struct GradientWalk::LoopGradient {
  struct Active {
    LoopVariable& variable;
    BackwardLoop::Variable gradient;
  };
  ForwardLoop& forward;
  std::unique_ptr<BackwardLoop> backward;
  std::vector<Active> active;
};

Status GradientWalk::AddGradientVariables(LoopGradient* loop) {
  for (LoopVariable& variable : loop->forward.variables()) {
    if (!IsBetween(variable.merge)) continue;
    const EdgeType type = variable.merge->output_type(0);
    if (type.dtype == DType::kResource || type.ref) {
      return Unimplemented("gradients: variable '", variable.merge->name(), "' of loop '",
                           loop->forward.info().name, "' is a handle that may change");
    }
    std::vector<Gradient> parts;
    for (Node* exit : variable.exits) {
      const Gradient part = SumAt({exit, 0});
      if (!part.none()) parts.push_back(part);
    }
    Output initial = parts.empty() ? ZerosOf(loop->forward.ExitOf(variable), type.dtype)
                                   : Dense(SumGradients(parts));
    RETURN_IF_ERROR(builder_.status());
    initial = WithStaticShape(initial, builder_.output_shape(variable.merge->id(), 0));
    loop->active.push_back({variable, loop->backward->AddVariable(initial)});
  }
  return builder_.status();
}

Status GradientWalk::WalkBody(LoopGradient* loop) {
  const auto inside = builder_.ContextScope(loop->backward.get());
  std::deque<Unit> outside;
  outside.swap(ready_);
  LoopGradient* const outer_loop = std::exchange(loop_, loop);
  for (const LoopGradient::Active& active : loop->active) {
    Contribute(*active.variable.next, 0, active.gradient.now);
  }
  for (const auto& [push, pop] : kept_.pairs()) {
    const bool in_this_loop = forward_->frames().of_node[push->id()] == loop->forward.frame();
    const Unit unit{.node = push};
    if (in_this_loop && MatchingPush(*pop) != nullptr && PendingCount(unit) == 0)
      ready_.push_back(unit);
  }
  RETURN_IF_ERROR(ProcessReady());
  ready_ = std::move(outside);
  loop_ = outer_loop;
  return OkStatus();
}

bool GradientWalk::UsesKeptValues(int frame) const {
  return std::any_of(kept_.pairs().begin(), kept_.pairs().end(), [&](const auto& pair) {
    return MatchingPush(*pair.second) != nullptr &&
           forward_->frames().of_node[pair.second->id()] == frame;
  });
}

// Called when the gradient of `frame` has been built. Decrements the pending counts of the loops
// that pushed values for `frame`. If `backward` pushes gradients for the backward loops of these
// loops, makes them run after `backward`.
void GradientWalk::OnLoopGradientBuilt(int frame, BackwardLoop* backward) {
  const std::vector<int>& of_node = forward_->frames().of_node;
  for (const auto& [push, pop] : kept_.pairs()) {
    if (of_node[pop->id()] != frame || MatchingPush(*pop) == nullptr) continue;
    const auto stack = kept_gradients_.find(push);
    if (stack != kept_gradients_.end() && backward != nullptr) {
      const auto after = builder_.ControlDependencies({backward->End()});
      const auto in_this_loop = builder_.ColocateWith(stack->second);
      stack->second = Identity(stack->second);
    }
    const Unit unit{.frame = of_node[push->id()]};
    if (--PendingCount(unit) == 0) ready_.push_back(unit);
  }
}

// Keeps `dy`, the gradient of the value that `push` pushed, for the backward loop of the loop with
// `push`. Backward loops run in reverse order of the forward loops: the gradient of the value
// popped last is computed first, so the gradients pass through a stack of their own.
void GradientWalk::KeepGradient(const Node& push, Output dy) {
  const Endpoint value = push.input(1);
  const Output stack = loop_->forward.NewStack(builder_.OutputOf(value.node, value.index));
  kept_gradients_[&push] = stack;
  loop_->backward->Push(stack, dy);
}

Gradient GradientWalk::KeptGradient(const Node& push) {
  const auto stack = kept_gradients_.find(&push);
  if (stack == kept_gradients_.end()) return {};
  const Endpoint value = push.input(1);
  return loop_->backward->PopMatching(stack->second, builder_.OutputOf(value.node, value.index));
}

Status GradientWalk::SetNextGradients(LoopGradient* loop) {
  for (const LoopGradient::Active& active : loop->active) {
    Output before;
    {
      const auto inside = builder_.ContextScope(loop->backward.get());
      const Gradient sum = SumAt({active.variable.branch, 1});
      before = sum.none() ? ZerosOf(builder_.OutputOf(active.variable.branch, 1),
                                    active.gradient.now.dtype())
                          : Dense(sum);
    }
    Contribute(*active.variable.enter, 0, loop->backward->Close(active.gradient, before));
  }
  return builder_.status();
}

Output GradientWalk::AccumulateDense(LoopGradient& loop, Output source, Output each) {
  const BackwardLoop::Variable sum = loop.backward->AddVariable(ZerosOf(source, each.dtype()));
  if (!builder_.status().ok()) return each;
  Output next;
  {
    const auto inside = builder_.ContextScope(loop.backward.get());
    next = AddN({sum.now, each});  // AddN also adds variants
  }
  return loop.backward->Close(sum, next);
}

// Concatenates the rows of all iterations. `none` has zero rows and seeds the accumulator.
Output GradientWalk::GatherRows(LoopGradient& loop, Output rows, Output none) {
  PartialShape shape = RowShape(rows);
  const PartialShape except0 = shape;
  if (shape.known_rank()) {
    shape = PartialShape({PartialShape::kUnknown});
    for (const int64_t dim : except0.dims()) shape.AddDim(dim);
  }
  const Output size = loop.forward.Count() + 1;
  const Outputs array =
      CallN("TensorArrayV3", {size},
            {{"dtype", rows.dtype()}, {"element_shape", shape}, {"tensor_array_name", "rows"}});
  const Output first = Constant(builder_, Tensor::Scalar<int32_t>(0));
  const Output flow = Call("TensorArrayWriteV3", {array[0], first, none, array[1]});
  const BackwardLoop::Variable written = loop.backward->AddVariable(flow);
  if (!builder_.status().ok()) return rows;
  Output next;
  {
    const auto inside = builder_.ContextScope(loop.backward.get());
    next = Call("TensorArrayWriteV3", {array[0], loop.backward->number(), rows, written.now});
  }
  const Output end = loop.backward->Close(written, next);
  return CallN("TensorArrayConcatV3", {array[0], end},
               {{"dtype", rows.dtype()}, {"element_shape_except0", except0}})[0];
}

Gradient GradientWalk::AccumulateSparse(LoopGradient& loop, Output source, const Gradient& each) {
  const DType type = each.dense_shape.dtype();
  const Output shape = source.dtype() == DType::kResource
                           ? Call("VariableShape", {source}, {{"out_type", type}})
                           : ShapeOf(source, type);
  const auto vector = [&](int32_t value) {
    return Constant(builder_, Tensor::Vector<int32_t>({value}));
  };
  const Output rest = Call("Slice", {Cast(shape, DType::kInt32), vector(1), vector(-1)});
  const Output dims = ConcatV2({vector(0), rest}, Constant(builder_, Tensor::Scalar<int32_t>(0)));
  const Output zero = Cast(Constant(builder_, Tensor::Scalar(0.0)), each.values.dtype());
  const Output no_index = Constant(builder_, Tensor(each.indices.dtype(), {0}));
  const Output values = GatherRows(loop, each.values, Fill(dims, zero));
  return Gradient(values, GatherRows(loop, each.indices, no_index), shape);
}

Status GradientWalk::AccumulateInvariants(LoopGradient* loop) {
  for (Node* enter : loop->forward.invariants()) {
    if (!IsBetween(enter)) continue;
    Gradient sum;
    const Gradient each = [&] {
      const auto inside = builder_.ContextScope(loop->backward.get());
      return SumAt({enter, 0});
    }();
    if (!each.none()) {
      const Endpoint endpoint = enter->input(0);
      const Output source = builder_.OutputOf(endpoint.node, endpoint.index);
      if (each.sparse()) {
        sum = AccumulateSparse(*loop, source, each);
      } else {
        sum = AccumulateDense(*loop, source, each.values);
      }
    }
    RETURN_IF_ERROR(builder_.status());
    Contribute(*enter, 0, sum);
  }
  return builder_.status();
}

Status GradientWalk::ProcessLoop(int frame) {
  ASSIGN_OR_RETURN(ForwardLoop * forward, forward_->Loop(frame));
  const auto name = builder_.NameScope(StrCat(forward->info().name, "_grad"));
  bool any = false, wanted = UsesKeptValues(frame);
  for (const auto& [push, stack] : kept_gradients_) {
    any |= forward_->frames().of_node[push->id()] == frame;
  }
  for (const LoopVariable& variable : forward->variables()) {
    for (Node* exit : variable.exits) any |= !SumAt({exit, 0}).none();
    wanted |= IsBetween(variable.enter) && FlowsInto(*variable.enter, 0);
  }
  for (const Node* enter : forward->invariants()) {
    wanted |= IsBetween(enter) && FlowsInto(*enter, 0);
  }
  if (!any || !wanted) {
    for (const LoopVariable& variable : forward->variables()) {
      if (IsBetween(variable.enter)) Contribute(*variable.enter, 0, {});
    }
    for (const Node* enter : forward->invariants()) {
      if (IsBetween(enter)) Contribute(*enter, 0, {});
    }
    OnLoopGradientBuilt(frame, nullptr);
    return builder_.status();
  }
  LoopGradient loop{.forward = *forward};
  loop.backward = std::make_unique<BackwardLoop>(*forward_, *forward,
                                                 StrCat(builder_.name_scope(), "while_context"));
  RETURN_IF_ERROR(builder_.status());
  RETURN_IF_ERROR(AddGradientVariables(&loop));
  RETURN_IF_ERROR(WalkBody(&loop));
  RETURN_IF_ERROR(SetNextGradients(&loop));
  RETURN_IF_ERROR(AccumulateInvariants(&loop));
  OnLoopGradientBuilt(frame, loop.backward.get());
  return Annotate(builder_.status(), StrCat("gradient of loop '", forward->info().name, "'"));
}

}  // namespace penstock
