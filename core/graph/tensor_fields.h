// SPDX-License-Identifier: Apache-2.0
//
// The typed fields of TensorProto (float_val, int_val, ...): how elements are read out of them.
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

// Elements of plain types, from the field of the tensor's type. False: the type has no such field.
bool FillFromFields(const tensorflow::TensorProto& proto, Tensor* tensor);

}  // namespace penstock
