// SPDX-License-Identifier: Apache-2.0
//
// For tests: a variant that holds a few strings. It can be encoded unless one of the strings is
// "secret".
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace penstock {

class TestWords final : public VariantValue {
 public:
  explicit TestWords(std::vector<std::string> words) : words_(std::move(words)) {}
  static Tensor Of(std::vector<std::string> words) {
    return Tensor::Scalar(Variant{std::make_shared<TestWords>(std::move(words))});
  }

  const char* TypeName() const override { return "test::Words"; }
  std::string ToString() const override { return StrCat(words_.size(), " words"); }
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    *metadata = "w";
    for (const std::string& word : words_) {
      if (word == "secret") return Unimplemented("a secret does not travel");
    }
    *tensors = {Tensor::Vector(words_)};
    return OkStatus();
  }
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors) {
    if (metadata != "w" || tensors.size() != 1 || tensors[0].dtype() != DType::kString) {
      return InvalidArgument("these are no words");
    }
    const auto words = tensors[0].flat<std::string>();
    return Variant{std::make_shared<TestWords>(std::vector(words.begin(), words.end()))};
  }

 private:
  std::vector<std::string> words_;
};

inline const bool test_words_registered = RegisterVariantDecoder("test::Words", TestWords::Decode);

}  // namespace penstock
