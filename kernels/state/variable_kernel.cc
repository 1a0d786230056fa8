// SPDX-License-Identifier: Apache-2.0
#include "kernels/state/variable_kernel.h"

namespace penstock {

StatusOr<std::shared_ptr<Variable>> VariableInput(const KernelContext& ctx, int i) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() != DType::kResource || input.num_elements() != 1) {
    return InvalidArgument("input ", i, " must be the handle of a variable, is ",
                           Name(input.dtype()), input.shape().ToString());
  }
  return ResolveHandleAs<Variable>(input.scalar<ResourceHandle>(), ctx.resources());
}

StatusOr<std::shared_ptr<Variable>> VariableInput(const KernelContext& ctx, int i, DType dtype) {
  ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, VariableInput(ctx, i));
  if (variable->dtype() != dtype) {
    return InvalidArgument("Trying to use variable '", variable->name(),
                           "' with wrong dtype. Expected ", Name(dtype), " got ",
                           Name(variable->dtype()));
  }
  return variable;
}

Status UpdateVariableInput(KernelContext& ctx, DType dtype,
                           absl::FunctionRef<Status(Tensor& value)> fn) {
  return UpdateVariableInput(ctx, dtype, fn, [] { return Slices::All(); });
}

Status UpdateVariableInput(KernelContext& ctx, DType dtype,
                           absl::FunctionRef<Status(Tensor& value)> fn,
                           absl::FunctionRef<Slices()> changed) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, VariableInput(ctx, 0, dtype));
  Variable* const one[] = {variable.get()};
  RETURN_IF_ERROR(Variable::Update(
      one, ctx.origin(), [&](absl::Span<Tensor* const> values) { return fn(*values[0]); },
      [&](size_t) { return changed(); }));
  if (ctx.num_outputs() > 0) ctx.SetOutput(0, ctx.input(0));
  return OkStatus();
}

Status UpdateAllOfVariableInput(KernelContext& ctx, DType dtype,
                                absl::FunctionRef<Status(const Variable::Renewal&)> fn) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, VariableInput(ctx, 0, dtype));
  Variable* const one[] = {variable.get()};
  RETURN_IF_ERROR(Variable::UpdateAll(
      one, ctx.origin(),
      [&](absl::Span<const Variable::Renewal> renewals) { return fn(renewals[0]); }));
  if (ctx.num_outputs() > 0) ctx.SetOutput(0, ctx.input(0));
  return OkStatus();
}

PartialShape VariableShape(const ShapeScope& s, int i, VariableForm form) {
  if (form == VariableForm::kRef) return s.input(i);
  return s.element(i) != nullptr ? s.element(i)->shape : PartialShape();
}

void SetVariableOutput(ShapeScope& s, VariableForm form, const PartialShape& shape) {
  if (form == VariableForm::kRef) s.set_output(0, shape);
}

}  // namespace penstock
