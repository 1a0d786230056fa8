// SPDX-License-Identifier: Apache-2.0
//
// TensorValue: a tensor as the value of a variant. Serialized sparse tensors consist of such
// variants.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace penstock {

class TensorValue final : public VariantValue {
 public:
  static constexpr char kTypeName[] = "tensorflow::Tensor";

  // Returns a variant that holds `tensor`. InvalidArgument if variants are nested too deeply in it.
  static StatusOr<Variant> Of(Tensor tensor) {
    auto made = std::make_shared<TensorValue>();
    RETURN_IF_ERROR(made->Admit(tensor));
    made->tensor_ = std::move(tensor);
    return Variant{std::move(made)};
  }
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors);
  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override { return tensor_.ToString(); }
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    metadata->clear();
    *tensors = {tensor_};
    return OkStatus();
  }

  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

}  // namespace penstock
