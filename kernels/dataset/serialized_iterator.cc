// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/serialized_iterator.h"

#include <memory>
#include <utility>

namespace penstock {
namespace {

const bool registered =
    RegisterVariantDecoder(SerializedIterator::kTypeName, SerializedIterator::Decode);

}  // namespace

StatusOr<Variant> SerializedIterator::Of(std::vector<Tensor> values) {
  auto made = std::make_shared<SerializedIterator>();
  for (const Tensor& value : values) RETURN_IF_ERROR(made->Admit(value));
  made->values_ = std::move(values);
  return Variant{std::move(made)};
}

StatusOr<Variant> SerializedIterator::Decode(const std::string&,
                                             const std::vector<Tensor>& tensors) {
  return Of(tensors);
}

std::string SerializedIterator::ToString() const {
  return StrCat("the state of an iterator: ", values_.size(), " tensors");
}

Status SerializedIterator::Encode(std::string* metadata, std::vector<Tensor>* tensors) const {
  metadata->clear();
  *tensors = values_;
  return OkStatus();
}

}  // namespace penstock
