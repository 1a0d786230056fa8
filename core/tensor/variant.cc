// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/variant.h"

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
