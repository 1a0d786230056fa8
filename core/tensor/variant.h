// SPDX-License-Identifier: Apache-2.0
//
// Variant: the element type of variant tensors. A Variant holds a value of a class that only some
// ops know, such as a list of tensors. Unlike a resource, such a value has no name and no device,
// never changes while it is shared, and is destroyed with the last Variant that holds it.
//
// Thread safety is that of std::shared_ptr. Only its sole owner may change a value
// (value.use_count() == 1 in a tensor that is unique()).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace penstock {

class Tensor;
class VariantValue;

struct Variant {
  std::shared_ptr<VariantValue> value;  // null in an element that was not set
};
static_assert(sizeof(Variant) == kVariantBytes);

// The maximum of VariantValue::depth, so that code may recurse into values without overflowing the
// stack.
inline constexpr int kVariantDepthMax = 32;

class VariantValue {
 public:
  virtual ~VariantValue() = default;
  // Returns 1 if the value's tensors hold no variants, else one more than the depth of the deepest
  // variant in them.
  int depth() const { return depth_; }
  // Returns the name that messages use for the class (VariantTensorDataProto.type_name), for
  // instance "tensorflow::TensorList".
  virtual const char* TypeName() const = 0;
  virtual std::string ToString() const = 0;
  // Writes the contents for a message. The VariantDecoder of the class makes an equal value from
  // them.
  virtual Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const = 0;

 protected:
  // Call this before adding `tensor` to the value. InvalidArgument if the value would become deeper
  // than kVariantDepthMax.
  Status Admit(const Tensor& tensor);

 private:
  int depth_ = 1;
};

// Makes a value from the metadata and tensors that its Encode wrote. They are not trusted:
// InvalidArgument says what does not fit.
using VariantDecoder = StatusOr<Variant> (*)(const std::string& metadata,
                                             const std::vector<Tensor>& tensors);

// Call it before main, by a static initialiser. REQUIRES: the type name is not registered yet.
bool RegisterVariantDecoder(const char* type_name, VariantDecoder decoder);
// Makes a value of the class with the name `type_name`. InvalidArgument if no class has this name,
// or if the decoder of the class refuses the contents.
StatusOr<Variant> DecodeVariant(const std::string& type_name, const std::string& metadata,
                                const std::vector<Tensor>& tensors);

}  // namespace penstock
