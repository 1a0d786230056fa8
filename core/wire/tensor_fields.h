// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the typed fields of TensorProto (float_val, int_val, ...).
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/tensor.h"

namespace tensorflow {
class TensorProto;
}

namespace penstock {

// Implements the rule of all typed fields: if there are fewer values than elements, the last value
// repeats; if there are none, elements are zero; surplus values are ignored. `value(i)` is the i-th
// of `count` values.
template <class T, class Value>
void FillRepeatingLast(int count, Tensor* tensor, Value value) {
  T* out = tensor->mutable_data<T>();
  const int64_t n = tensor->num_elements();
  const int64_t given = std::min<int64_t>(count, n);
  for (int64_t i = 0; i < given; ++i) out[i] = value(static_cast<int>(i));
  std::fill(out + given, out + n, given > 0 ? out[given - 1] : T{});
}

// Fills *tensor from the field for its type. Returns false for resources and variants; all other
// types have such a field.
bool FillFromFields(const tensorflow::TensorProto& proto, Tensor* tensor);

// Returns the number of elements in the field of that type; 0 if the type has no such field.
int64_t ElementsInField(const tensorflow::TensorProto& proto, DType dtype);

// Writes every element into the field of the tensor's type, and sets nothing else. Returns false if
// the type has no such field. REQUIRES: no more elements than a message can hold.
bool WriteField(const Tensor& tensor, tensorflow::TensorProto* proto);

}  // namespace penstock
