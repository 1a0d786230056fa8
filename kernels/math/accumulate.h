// SPDX-License-Identifier: Apache-2.0
//
// Zeros and sums of tensors whose dtype is known only at run time, variants included. Gradient code
// uses them to add up the gradients of one value.
#pragma once

#include "core/op/kernel.h"
#include "core/tensor/variant.h"

namespace penstock {

// A variant value that has a zero and a sum. Neither function changes this value; `ctx` provides
// memory and threads.
class ArithmeticVariant : public VariantValue {
 public:
  virtual StatusOr<Variant> ZerosLike(KernelContext& ctx) const = 0;
  // Returns the sum with `other`. InvalidArgument if `other` has another class or form.
  virtual StatusOr<Variant> Plus(KernelContext& ctx, const VariantValue& other) const = 0;
};

// Returns a tensor of zeros in the shape of `x`. InvalidArgument for a variant that is not
// arithmetic.
StatusOr<Tensor> ZerosOf(KernelContext& ctx, const Tensor& x);

// Computes *to += value, in place if no other tensor shares *to's buffer. InvalidArgument for types
// that have no sum, and if types or shapes differ.
Status AddInPlace(KernelContext& ctx, Tensor* to, const Tensor& value);

}  // namespace penstock
