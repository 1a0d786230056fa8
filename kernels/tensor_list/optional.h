// SPDX-License-Identifier: Apache-2.0
//
// OptionalValue: a list of tensors, or nothing, as the value of a variant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/math/accumulate.h"

namespace penstock {

class OptionalValue final : public ArithmeticVariant {
 public:
  static constexpr char kTypeName[] = "tensorflow::data::Optional";

  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override {
    return values_ ? StrCat("an optional of ", values_->size(), " tensors") : "an empty optional";
  }
  // Encodes as TensorFlow does: one byte says whether there is a value.
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    *metadata = std::string(1, values_ ? '\1' : '\0');
    if (values_) *tensors = *values_;
    return OkStatus();
  }
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors) {
    if (metadata.size() != 1 || (metadata[0] == 0 && !tensors.empty())) {
      return InvalidArgument("an optional whose metadata is malformed");
    }
    if (metadata[0] == 0) return None();
    return Of(tensors);
  }
  // Returns an optional without a value.
  static Variant None() { return {std::make_shared<OptionalValue>()}; }
  static StatusOr<Variant> Of(std::vector<Tensor> values) {
    auto made = std::make_shared<OptionalValue>();
    for (const Tensor& value : values) RETURN_IF_ERROR(made->Admit(value));
    made->values_ = std::move(values);
    return Variant{std::move(made)};
  }

  StatusOr<Variant> ZerosLike(KernelContext& ctx) const override {
    if (!values_) return None();
    std::vector<Tensor> zeros;
    for (const Tensor& value : *values_) {
      ASSIGN_OR_RETURN(Tensor zero, ZerosOf(ctx, value));
      zeros.push_back(std::move(zero));
    }
    return Of(std::move(zeros));
  }

  StatusOr<Variant> Plus(KernelContext& ctx, const VariantValue& other) const override {
    const auto* addend = dynamic_cast<const OptionalValue*>(&other);
    if (addend == nullptr) {
      return InvalidArgument("an optional and a variant of type '", other.TypeName(),
                             "' have no sum");
    }
    if (values_.has_value() != addend->values_.has_value()) {
      return InvalidArgument("Cannot add optionals because one has a value and the other doesn't.");
    }
    if (!values_) return None();
    if (values_->size() != addend->values_->size()) {
      return InvalidArgument("Cannot add optionals because they have different numbers of ",
                             "components (", values_->size(), " vs. ", addend->values_->size(),
                             ").");
    }
    std::vector<Tensor> sums = *values_;
    for (size_t i = 0; i < sums.size(); ++i) {
      RETURN_IF_ERROR(AddInPlace(ctx, &sums[i], (*addend->values_)[i]));
    }
    return Of(std::move(sums));
  }

  const std::optional<std::vector<Tensor>>& values() const { return values_; }

 private:
  std::optional<std::vector<Tensor>> values_;
};

}  // namespace penstock
