// SPDX-License-Identifier: Apache-2.0
//
// TestVariant: a class of variants that hold a text and tensors, for tests of checkpoints.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace penstock {

class TestVariant final : public VariantValue {
 public:
  static constexpr char kTypeName[] = "penstock::TestVariant";

  static Variant Of(std::string text, std::vector<Tensor> tensors) {
    auto value = std::make_shared<TestVariant>();
    for (const Tensor& tensor : tensors) CHECK_OK(value->Admit(tensor));
    value->text_ = std::move(text);
    value->tensors_ = std::move(tensors);
    return {std::move(value)};
  }
  static StatusOr<Variant> Decode(const std::string& text, const std::vector<Tensor>& tensors) {
    return Of(text, tensors);
  }
  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override {
    std::string text = text_;
    for (const Tensor& tensor : tensors_) StrAppend(&text, ": ", tensor.ToString());
    return text;
  }
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    *metadata = text_;
    *tensors = tensors_;
    return OkStatus();
  }

 private:
  std::string text_;
  std::vector<Tensor> tensors_;
};

inline const bool test_variant_is_registered =
    RegisterVariantDecoder(TestVariant::kTypeName, TestVariant::Decode);

}  // namespace penstock
