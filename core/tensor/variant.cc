// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/variant.h"

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "core/tensor/tensor.h"

namespace penstock {
namespace {

std::map<std::string, VariantDecoder>& Decoders() {
  static auto* const decoders = new std::map<std::string, VariantDecoder>;
  return *decoders;
}

}  // namespace

Status VariantValue::Admit(const Tensor& tensor) {
  if (tensor.dtype() != DType::kVariant) return OkStatus();
  int deepest = 0;
  for (const Variant& variant : tensor.flat<Variant>()) {
    if (variant.value != nullptr) deepest = std::max(deepest, variant.value->depth());
  }
  if (deepest >= kVariantDepthMax) {
    return InvalidArgument("a ", TypeName(), " would hold variants in variants more than ",
                           kVariantDepthMax, " deep");
  }
  depth_ = std::max(depth_, deepest + 1);
  return OkStatus();
}

bool RegisterVariantDecoder(const char* type_name, VariantDecoder decoder) {
  CHECK(Decoders().emplace(type_name, decoder).second, "two variants are named ", type_name);
  return true;
}

StatusOr<Variant> DecodeVariant(const std::string& type_name, const std::string& metadata,
                                const std::vector<Tensor>& tensors) {
  const auto decoder = Decoders().find(type_name);
  if (decoder == Decoders().end()) {
    return InvalidArgument("no variant type is named '", type_name, "'");
  }
  return decoder->second(metadata, tensors);
}

}  // namespace penstock
