// SPDX-License-Identifier: Apache-2.0
//
// Functions that kernels on variables share: they find the variable of an input, and its shape when
// the graph is built.
//
// A resource input and a ref edge both carry a ResourceHandle, so one kernel serves both forms of
// an op (ScatterAdd and ResourceScatterAdd). If the op has an output, it is the same handle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "core/op/variable.h"

namespace penstock {

// Returns the variable of input i. InvalidArgument if the input is not a handle; NotFound if the
// variable does not exist any more.
StatusOr<std::shared_ptr<Variable>> VariableInput(const KernelContext& ctx, int i);
// Like VariableInput above; also InvalidArgument if the variable's type is not `dtype`.
StatusOr<std::shared_ptr<Variable>> VariableInput(const KernelContext& ctx, int i, DType dtype);

// Updates the variable of input 0, of type `dtype`, by calling `fn`. If the op has an output 0, as
// ops on ref edges do, sets it to the variable's handle. Returns the error of VariableInput or of
// `fn`, or FailedPrecondition if the variable is not initialized.
Status UpdateVariableInput(KernelContext& ctx, DType dtype,
                           absl::FunctionRef<Status(Tensor& value)> fn);
// Like the function above, for an update of a few rows. `changed` is called after `fn` if a
// StateLog or a ChangeWatch needs to know which slices `fn` may have changed.
Status UpdateVariableInput(KernelContext& ctx, DType dtype,
                           absl::FunctionRef<Status(Tensor& value)> fn,
                           absl::FunctionRef<Slices()> changed);

// Like UpdateVariableInput, for an update of all elements: calls `fn` as Variable::UpdateAll does.
Status UpdateAllOfVariableInput(KernelContext& ctx, DType dtype,
                                absl::FunctionRef<Status(const Variable::Renewal&)> fn);

// Calls fn(begin, end) for the elements [begin, end) of an update of all elements. If a value is
// shared, first copies its elements to the new buffer; then the calls are for short ranges, so that
// `fn` finds the copies in the cache. All renewals have elements of type T.
template <class T, class Fn>
void ForEachRenewed(absl::Span<const Variable::Renewal> renewals, int64_t begin, int64_t end,
                    const Fn& fn) {
  constexpr int64_t kElements = 16384 / sizeof(T);
  const bool shared = std::any_of(renewals.begin(), renewals.end(),
                                  [](const auto& renewal) { return renewal.shared != nullptr; });
  const int64_t step = shared ? kElements : end - begin;
  for (int64_t stop = 0; begin < end; begin = stop) {
    stop = std::min(end, begin + step);
    for (const Variable::Renewal& renewal : renewals) {
      if (renewal.shared == nullptr) continue;
      const T* const from = renewal.shared->data<T>();
      std::copy(from + begin, from + stop, renewal.value->mutable_data<T>() + begin);
    }
    fn(begin, stop);
  }
}

// The type of a variable's handle: a ref edge or a resource handle.
enum class VariableForm { kRef, kResource };
// Returns the shape of the value of variable input i, as far as it is known.
PartialShape VariableShape(const ShapeScope& s, int i, VariableForm form);
// If the op has an output 0, as ops on ref edges do, sets its shape to that of the variable.
void SetVariableOutput(ShapeScope& s, VariableForm form, const PartialShape& shape);

}  // namespace penstock
