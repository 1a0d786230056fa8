// SPDX-License-Identifier: Apache-2.0
//
// What kernels on variables share: the variable behind an input, and its shape at graph
// construction.
//
// A resource input and a reference edge both carry a ResourceHandle, so one kernel serves both
// forms of an op (ScatterAdd and ResourceScatterAdd); where there is an output, it is the handle
// again.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "core/op/variable.h"

namespace penstock {

// InvalidArgument where input i is no handle; NotFound where the variable is gone.
StatusOr<std::shared_ptr<Variable>> VariableInput(const KernelContext& ctx, int i);
// And where it holds another type than `dtype`.
StatusOr<std::shared_ptr<Variable>> VariableInput(const KernelContext& ctx, int i, DType dtype);

// Changes the one variable of input 0, of type `dtype`, and passes its handle on to output 0 where
// there is one (reference ops).
Status UpdateVariableInput(KernelContext& ctx, DType dtype,
                           absl::FunctionRef<Status(Tensor& value)> fn);
// As above, for an update of a few rows: `changed` is called after `fn` if somebody wants to know
// which slices that may have changed.
Status UpdateVariableInput(KernelContext& ctx, DType dtype,
                           absl::FunctionRef<Status(Tensor& value)> fn,
                           absl::FunctionRef<Slices()> changed);

// Whether an op's variables are reference edges or resource handles.
enum class VariableForm { kRef, kResource };
// The shape of the value of variable input i, as far as known.
PartialShape VariableShape(const ShapeScope& s, int i, VariableForm form);
// Output 0, where there is one (reference ops), has the shape of the variable.
void SetVariableOutput(ShapeScope& s, VariableForm form, const PartialShape& shape);

}  // namespace penstock
