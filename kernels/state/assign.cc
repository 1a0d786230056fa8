// SPDX-License-Identifier: Apache-2.0
//
// Ops that assign to a whole variable, or add to it, each for variables as ref edges and as
// resource handles.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/state/update_functors.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

class AssignKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("validate_shape", &validate_shape_);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, ctx.input(1).dtype()));
    RETURN_IF_ERROR(variable->Assign(ctx.TakeInput(1), validate_shape_, ctx.origin()));
    ctx.SetOutput(0, ctx.input(0));
    return OkStatus();
  }

 private:
  bool validate_shape_ = true;
};

// The assignment to resource variables. If validate_shape, the value must have the shape of the
// current value, not the declared shape. The first value may have any shape. A value of another
// shape is also accepted if it fits the shape that the graphs declare and the current value does
// not fit it: the current value then comes from a program that has ended.
class AssignVariableKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("validate_shape", &validate_shape_);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, ctx.input(1).dtype()));
    if (validate_shape_ && variable->initialized()) {
      const Shape& shape = ctx.input(1).shape();
      const Status fits = variable->Inspect([&](const Tensor& value) -> Status {
        if (value.shape() == shape) return OkStatus();
        return InvalidArgument("Trying to assign to variable with tensor with wrong shape. ",
                               "Expected ", value.shape().ToString(), " got ", shape.ToString());
      });
      if (!fits.ok() && !variable->MayReplaceShape(shape)) return fits;
    }
    return variable->Assign(ctx.TakeInput(1), /*validate_shape=*/false, ctx.origin());
  }

 private:
  bool validate_shape_ = false;
};

// Computes variable = Fn(variable, value), element by element.
template <class Fn, class T>
class AssignWithKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(1);
    const auto update = [&](const Variable::Renewal& renewal) -> Status {
      Tensor& variable = *renewal.value;
      if (variable.shape() != value.shape()) {
        return InvalidArgument("Cannot update variable with shape ", variable.shape().ToString(),
                               " using a Tensor with shape ", value.shape().ToString(),
                               ", shapes must be equal.");
      }
      T* const to = variable.mutable_data<T>();
      const T* const from = value.data<T>();
      // At the memory's bandwidth, reading and writing eight bytes takes about a nanosecond.
      ctx.threads().ParallelFor(
          value.num_elements(), sizeof(T) / 8.0, [&](int64_t first, int64_t last) {
            ForEachRenewed<T>({&renewal, 1}, first, last, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) Fn::Apply(to[i], from[i]);
            });
          });
      return OkStatus();
    };
    return UpdateAllOfVariableInput(ctx, kDTypeOf<T>, update);
  }
};
template <class T>
using AssignAddKernel = AssignWithKernel<AddTo, T>;
template <class T>
using AssignSubKernel = AssignWithKernel<SubtractFrom, T>;

Status AssignShape(ShapeScope& s) {
  if (!s.attr<bool>("validate_shape")) {
    s.set_output(0, s.input(1));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(PartialShape shape, s.input(0).Merge(s.input(1)));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

template <VariableForm kForm>
Status SameShapeAsVariable(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, VariableShape(s, 0, kForm).Merge(s.input(1)));
  SetVariableOutput(s, kForm, shape);
  return OkStatus();
}

OP(Assign) {
  return {
      .doc = "Replaces the value of a variable.",
      .inputs = {{"ref", Ref("T")}, {"value", "T"}},
      .outputs = {{"output_ref", Ref("T")}},
      .types = {{"T", kAnyType}},
      .attrs = {{"validate_shape", true}, {"use_locking", true}},
      .shape = AssignShape,
      .gradient = NoGradient,
      .allows_uninitialized_input = true,
  };
}
KERNEL_ANY_TYPE(Assign, AssignKernel);

OP(AssignVariableOp) {
  return {
      .doc = "Replaces the value of a variable.",
      .inputs = {{"resource", "resource"}, {"value", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"validate_shape", false}},
      .shape = SameShapeAsVariable<VariableForm::kResource>,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(AssignVariableOp, AssignVariableKernel);

#define ASSIGN_WITH(Verb, text)                                   \
  OP(Assign##Verb) {                                              \
    return {                                                      \
        .doc = text,                                              \
        .inputs = {{"ref", Ref("T")}, {"value", "T"}},            \
        .outputs = {{"output_ref", Ref("T")}},                    \
        .types = {{"T", kNumber}},                                \
        .attrs = {{"use_locking", false}},                        \
        .shape = SameShapeAsVariable<VariableForm::kRef>,         \
        .gradient = NoGradient,                                   \
    };                                                            \
  }                                                               \
  KERNEL(Assign##Verb, Assign##Verb##Kernel, NUMBER_TYPES);       \
  OP(Assign##Verb##VariableOp) {                                  \
    return {                                                      \
        .doc = text,                                              \
        .inputs = {{"resource", "resource"}, {"value", "dtype"}}, \
        .types = {{"dtype", kNumber}},                            \
        .shape = SameShapeAsVariable<VariableForm::kResource>,    \
        .gradient = NoGradient,                                   \
        .stateful = true,                                         \
    };                                                            \
  }                                                               \
  KERNEL_BY("dtype", Assign##Verb##VariableOp, Assign##Verb##Kernel, NUMBER_TYPES)

ASSIGN_WITH(Add, "variable += value, of equal shapes.");
ASSIGN_WITH(Sub, "variable -= value, of equal shapes.");

}  // namespace
}  // namespace penstock
