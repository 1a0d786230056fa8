// SPDX-License-Identifier: Apache-2.0
//
// Zeros and sums of tensors of a dtype that is known at run time, variants among them: what
// gradients that meet in one place need.
#pragma once

#include "core/op/kernel.h"
#include "core/tensor/variant.h"

namespace penstock {

// A variant that has zeros and sums. Neither changes the value; `ctx` lends memory and threads.
class ArithmeticVariant : public VariantValue {
 public:
  virtual StatusOr<Variant> ZerosLike(KernelContext& ctx) const = 0;
  // InvalidArgument where `other` is of another class or form.
  virtual StatusOr<Variant> Plus(KernelContext& ctx, const VariantValue& other) const = 0;
};

// A tensor of zeros in the shape of `x`. InvalidArgument for a variant that is not arithmetic.
StatusOr<Tensor> ZerosOf(KernelContext& ctx, const Tensor& x);

// *to += value, in place where nobody else holds *to's buffer. InvalidArgument for types that have
// no sum, and where types or shapes differ.
Status AddInPlace(KernelContext& ctx, Tensor* to, const Tensor& value);

}  // namespace penstock
