// SPDX-License-Identifier: Apache-2.0
//
// RaggedValue: a ragged tensor as the value of a variant.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"
#include "kernels/math/accumulate.h"

namespace penstock {

class RaggedValue final : public ArithmeticVariant {
 public:
  static constexpr char kTypeName[] = "RaggedTensorVariant";

  // Returns a variant that holds a ragged tensor. `splits` are vectors of int32 or int64, the
  // outermost first. InvalidArgument if variants are nested too deeply in `values`.
  static StatusOr<Variant> Of(std::vector<Tensor> splits, Tensor values);
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors);
  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override;
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override;
  StatusOr<Variant> ZerosLike(KernelContext& ctx) const override;
  // Adds the values. InvalidArgument unless `other` has the same splits.
  StatusOr<Variant> Plus(KernelContext& ctx, const VariantValue& other) const override;

  const std::vector<Tensor>& splits() const { return splits_; }
  const Tensor& values() const { return values_; }

 private:
  std::vector<Tensor> splits_;
  Tensor values_;
};

}  // namespace penstock
