// SPDX-License-Identifier: Apache-2.0
//
// Variant: the element of a variant tensor: a value of a class that only the ops which make and use
// it know, such as a list of tensors. Unlike a resource it is a value: it has no name and no place,
// is never changed while it is shared, and dies with its last copy.
//
// Thread safety: as std::shared_ptr. A value may be changed only by who holds its one reference
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
  std::shared_ptr<VariantValue> value;  // null in an element that nobody has set
};
static_assert(sizeof(Variant) == kVariantBytes);

// A value may hold tensors of values that hold tensors, and so on, so deep and no deeper: whatever
// walks them may recurse.
inline constexpr int kVariantDepthMax = 32;

class VariantValue {
 public:
  virtual ~VariantValue() = default;
  // 1, or one more than what its tensors hold.
  int depth() const { return depth_; }
  // The name of the class on the wire (VariantTensorDataProto.type_name), for instance
  // "tensorflow::TensorList".
  virtual const char* TypeName() const = 0;
  virtual std::string ToString() const = 0;
  // What travels on the wire beside the name; the class's VariantDecoder makes the value from it.
  virtual Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const = 0;

 protected:
  // To be asked before `tensor` becomes a part of the value. InvalidArgument where that would make
  // it deeper than kVariantDepthMax.
  Status Admit(const Tensor& tensor);

 private:
  int depth_ = 1;
};

// Makes a value from what its Encode wrote. What it is given comes from outside: InvalidArgument
// says what does not fit.
using VariantDecoder = StatusOr<Variant> (*)(const std::string& metadata,
                                             const std::vector<Tensor>& tensors);

// Registration happens before main; REQUIRES a type name that is new.
bool RegisterVariantDecoder(const char* type_name, VariantDecoder decoder);
// InvalidArgument where no class has that name.
StatusOr<Variant> DecodeVariant(const std::string& type_name, const std::string& metadata,
                                const std::vector<Tensor>& tensors);

}  // namespace penstock
