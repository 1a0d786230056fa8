// SPDX-License-Identifier: Apache-2.0
//
// Stacks of tensors, which live within one step. A loop pushes values, and the loop that computes
// its gradient pops them, because it runs the iterations in reverse order.
//
// The kernels do not access the elements. On a CPU the elements are in host memory, so
// `swap_memory` has no effect. On a device with memory of its own the elements stay there, unless
// the push has `swap_memory`: then the element is copied to the host, and back if an op on the
// device uses the popped value (core/runtime/placement.h).
#include <limits>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/tensor_array/array_kernel.h"

namespace penstock {
namespace {

// A stack of tensors. A StateLog cannot replay it. The actions have no values: "push", "pop",
// "close".
class Stack final : public Resource {
 public:
  Stack(std::string name, DType dtype, int64_t max_size)
      : name_(std::move(name)), dtype_(dtype), max_size_(max_size) {}
  const char* TypeName() const override { return "Stack"; }
  const char* OpaqueReason() const override { return kLivesWithinOneStep; }
  std::string DebugString() const override {
    MutexLock lock(mu_);
    return StrCat("Stack ", name_, " of ", values_.size(), " ", Name(dtype_));
  }

  Status Push(Tensor value, const UpdateOrigin& origin) {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(Check(value.dtype()));
    if (static_cast<int64_t>(values_.size()) >= max_size_) {
      return InvalidArgument("Stack[", name_, "] overflowed its max_size (", max_size_, ")");
    }
    values_.push_back(std::move(value));
    Changed(origin, "push", [] { return std::vector<Tensor>(); });
    return OkStatus();
  }

  StatusOr<Tensor> Pop(DType wanted, const UpdateOrigin& origin) {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(Check(wanted));
    if (values_.empty()) {
      return InvalidArgument("Stack[", name_, "] is empty when calling Pop().");
    }
    Tensor value = std::move(values_.back());
    values_.pop_back();
    Changed(origin, "pop", [] { return std::vector<Tensor>(); });
    return value;
  }

  void Close(const UpdateOrigin& origin) {
    std::vector<Tensor> dropped;  // destroyed outside the lock
    MutexLock lock(mu_);
    dropped.swap(values_);
    if (std::exchange(closed_, true)) return;
    Changed(origin, "close", [] { return std::vector<Tensor>(); });
  }
  void Shutdown() override { Close({}); }

 private:
  Status Check(DType dtype) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (closed_) return InvalidArgument("Stack[", name_, "] has already been closed.");
    if (dtype == dtype_) return OkStatus();
    return InvalidArgument("Stack[", name_, "] holds ", Name(dtype_), ", not ", Name(dtype));
  }

  const std::string name_;
  const DType dtype_;
  const int64_t max_size_;
  mutable Mutex mu_;
  std::vector<Tensor> values_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

class StackKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("elem_type", &dtype_));
    RETURN_IF_ERROR(node.Attr("stack_name", &name_));
    if (name_.empty()) name_ = node.name;
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    int64_t max_size = -1;
    if (ctx.num_inputs() > 0) {
      ASSIGN_OR_RETURN(max_size, IntScalar(ctx.input(0), "max_size"));
    }
    if (max_size < 0) max_size = std::numeric_limits<int64_t>::max();
    const std::string name = UniqueStepName(name_);
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<Stack>(name, dtype_, max_size);
    };
    ASSIGN_OR_RETURN(auto stack, ctx.step().step_resources->LookupOrCreate(kStacks, name, "Stack",
                                                                           make, ctx.origin()));
    ASSIGN_OR_RETURN(Tensor handle, MakeHandle(ctx, ctx.output_type(0), kStacks, name,
                                               std::move(stack), {dtype_, PartialShape()}));
    ctx.SetOutput(0, std::move(handle));
    return OkStatus();
  }

 private:
  DType dtype_ = DType::kInvalid;
  std::string name_;
};

class StackPushKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto stack, StepResourceInputAs<Stack>(ctx, 0));
    RETURN_IF_ERROR(stack->Push(ctx.input(1), ctx.origin()));
    ctx.SetOutput(0, ctx.TakeInput(1));
    return OkStatus();
  }
};

class StackPopKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    if (!node.attrs.contains(kElementShapeAttr)) return OkStatus();
    return node.Attr(kElementShapeAttr, &shape_);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto stack, StepResourceInputAs<Stack>(ctx, 0));
    ASSIGN_OR_RETURN(Tensor value, stack->Pop(ctx.output_type(0).dtype, ctx.origin()));
    if (!shape_.Compatible(value.shape())) {
      return InvalidArgument("an element of shape ", value.shape().ToString(),
                             " was popped; the node says ", shape_.ToString());
    }
    ctx.SetOutput(0, std::move(value));
    return OkStatus();
  }

 private:
  PartialShape shape_;
};

class StackCloseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto stack, StepResourceInputAs<Stack>(ctx, 0));
    stack->Close(ctx.origin());
    return OkStatus();
  }
};

OpDef NewStackOp(OpGeneration generation) {
  OpDef op = {.doc = "Makes an empty stack of tensors of type elem_type.",
              .outputs = {HandleArg(generation)},
              .types = {{"elem_type", kAnyType}},
              .attrs = {{"stack_name", ""}},
              .shape = [generation](ShapeScope& s) -> Status {
                if (s.num_inputs() > 0) RETURN_IF_ERROR(s.WithRank(0, 0).status());
                s.set_output(0, HandleShape(generation));
                return OkStatus();
              },
              .gradient = NoGradient,
              .stateful = true,
              .stack = StackOp::kMake};
  if (generation == OpGeneration::kResource) {
    op.inputs = {{"max_size", "int32"}};
    op.examples = {{.inputs = {{{.shape = {}, .values = {-1}}}}}};
  }
  return op;
}

OpDef StackPushOp(OpGeneration generation) {
  return {.doc = "Pushes a tensor onto a stack, and returns it.",
          .inputs = {HandleArg(generation), {"elem", "T"}},
          .outputs = {{"output", "T"}},
          .types = {{"T", kAnyType}},
          .attrs = {{"swap_memory", false}},
          .shape = [](ShapeScope& s) -> Status {
            s.set_output(0, s.input(1));
            return OkStatus();
          },
          .gradient = NoGradient,
          .stateful = true,
          .stack = StackOp::kPush};
}

OpDef StackPopOp(OpGeneration generation) {
  return {.doc = "Pops the top element of a stack.",
          .inputs = {HandleArg(generation)},
          .outputs = {{"elem", "elem_type"}},
          .types = {{"elem_type", kAnyType}},
          .shape = [](ShapeScope& s) -> Status {
            const auto shape = s.attrs().find(kElementShapeAttr);
            if (shape == s.attrs().end()) return OkStatus();
            if (const auto* known = shape->second.get<PartialShape>()) s.set_output(0, *known);
            return OkStatus();
          },
          .gradient = NoGradient,
          .stateful = true,
          .stack = StackOp::kPop};
}

OpDef StackCloseOp(OpGeneration generation) {
  return {.doc = "Deletes a stack and its elements.",
          .inputs = {HandleArg(generation)},
          .shape = NoOutputs,
          .gradient = NoGradient,
          .stateful = true};
}

OP(Stack) { return NewStackOp(OpGeneration::kReference); }
OP(StackV2) { return NewStackOp(OpGeneration::kResource); }
OP(StackPush) { return StackPushOp(OpGeneration::kReference); }
OP(StackPushV2) { return StackPushOp(OpGeneration::kResource); }
OP(StackPop) { return StackPopOp(OpGeneration::kReference); }
OP(StackPopV2) { return StackPopOp(OpGeneration::kResource); }
OP(StackClose) { return StackCloseOp(OpGeneration::kReference); }
OP(StackCloseV2) { return StackCloseOp(OpGeneration::kResource); }
KERNEL_ANY_TYPE(Stack, StackKernel);
KERNEL_ANY_TYPE(StackV2, StackKernel);
KERNEL_ANY_TYPE(StackPush, StackPushKernel);
KERNEL_ANY_TYPE(StackPushV2, StackPushKernel);
KERNEL_ANY_TYPE(StackPop, StackPopKernel);
KERNEL_ANY_TYPE(StackPopV2, StackPopKernel);
KERNEL_ANY_TYPE(StackClose, StackCloseKernel);
KERNEL_ANY_TYPE(StackCloseV2, StackCloseKernel);

KERNEL_DEF({.op = "StackV2",
            .device = "GPU",
            .host_args = {"max_size", "handle"},
            .make = Make<StackKernel>});
KERNEL_DEF(
    {.op = "StackPushV2", .device = "GPU", .host_args = {"handle"}, .make = Make<StackPushKernel>});
KERNEL_DEF(
    {.op = "StackPopV2", .device = "GPU", .host_args = {"handle"}, .make = Make<StackPopKernel>});
KERNEL_DEF({.op = "StackCloseV2",
            .device = "GPU",
            .host_args = {"handle"},
            .make = Make<StackCloseKernel>});

}  // namespace
}  // namespace penstock
