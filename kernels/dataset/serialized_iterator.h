// SPDX-License-Identifier: Apache-2.0
//
// SerializedIterator: the state of an iterator as the value of a variant, which tasks can send and
// checkpoints hold. TensorFlow's states have another form, so neither side continues from the state
// of the other. TensorFlow refuses our type name; under its own it would end the process.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace penstock {

class SerializedIterator final : public VariantValue {
 public:
  static constexpr char kTypeName[] = "penstock::Iterator";
  // The name of TensorFlow's states, which earlier versions of Penstock used for theirs, too.
  static constexpr char kTensorFlowTypeName[] = "tensorflow::Iterator";

  static StatusOr<Variant> Of(std::vector<Tensor> values);
  // InvalidArgument if TensorFlow has made the state.
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors);
  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override;
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override;

  const std::vector<Tensor>& values() const { return values_; }

 private:
  std::vector<Tensor> values_;
};

}  // namespace penstock
