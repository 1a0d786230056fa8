// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/serialized_iterator.h"

#include <memory>
#include <utility>

namespace penstock {
namespace {

Status FromTensorFlow() {
  return InvalidArgument("TensorFlow has saved this state of an iterator, from which only ",
                         "TensorFlow can continue; restore without it, and the iterator begins at ",
                         "its first element");
}

// CompressElement makes this type, and so does TensorFlow for the content of a saved iterator,
// which is decoded before the iterator itself. So the text names both.
StatusOr<Variant> RefuseCompressed(const std::string&, const std::vector<Tensor>&) {
  return InvalidArgument(
      "a compressed element, which only TensorFlow can read: pass the element uncompressed; if it ",
      "belongs to an iterator that TensorFlow has saved, restore without the iterator, which then ",
      "begins at its first element");
}

const bool registered =
    RegisterVariantDecoder(SerializedIterator::kTypeName, SerializedIterator::Decode) &&
    RegisterVariantDecoder(SerializedIterator::kTensorFlowTypeName, SerializedIterator::Decode) &&
    RegisterVariantDecoder("tensorflow.data.CompressedElement", RefuseCompressed);

}  // namespace

StatusOr<Variant> SerializedIterator::Of(std::vector<Tensor> values) {
  auto made = std::make_shared<SerializedIterator>();
  for (const Tensor& value : values) RETURN_IF_ERROR(made->Admit(value));
  made->values_ = std::move(values);
  return Variant{std::move(made)};
}

StatusOr<Variant> SerializedIterator::Decode(const std::string& metadata,
                                             const std::vector<Tensor>& tensors) {
  if (!metadata.empty()) return FromTensorFlow();
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
