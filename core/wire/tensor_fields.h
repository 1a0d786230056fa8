// SPDX-License-Identifier: Apache-2.0
//
// The typed fields of TensorProto (float_val, int_val, ...): how elements get into and out of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/tensor.h"

namespace tensorflow {
class TensorProto;
}

namespace penstock {

// The rule of all of them: fewer values than elements: the last one repeats; none: zeros. More: the
// rest is ignored. `value(i)` is the i-th of `count`.
template <class T, class Value>
void FillRepeatingLast(int count, Tensor* tensor, Value value) {
  T* out = tensor->mutable_data<T>();
  const int64_t n = tensor->num_elements();
  const int64_t given = std::min<int64_t>(count, n);
  for (int64_t i = 0; i < given; ++i) out[i] = value(static_cast<int>(i));
  std::fill(out + given, out + n, given > 0 ? out[given - 1] : T{});
}

// From the field of the tensor's type. False: the type has no such field (all but resources and
// variants do).
bool FillFromFields(const tensorflow::TensorProto& proto, Tensor* tensor);

// How many elements the field of that type holds; 0 where the type has no such field.
int64_t ElementsInField(const tensorflow::TensorProto& proto, DType dtype);

// Puts every element into the field of the tensor's type, and sets nothing else. False: the type
// has no such field. REQUIRES as many as a message can hold.
bool WriteField(const Tensor& tensor, tensorflow::TensorProto* proto);

}  // namespace penstock
