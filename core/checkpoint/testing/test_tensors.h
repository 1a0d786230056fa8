// SPDX-License-Identifier: Apache-2.0
//
// Creates and compares tensors, for tests of checkpoints.
#pragma once

#include <cstring>
#include <string>

#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace penstock {

// Returns true if type, shape and every bit are equal; the texts of variants are compared.
inline bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return a.flat<std::string>() == b.flat<std::string>();
  if (a.dtype() == DType::kVariant) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      const Variant &x = a.flat<Variant>()[i], &y = b.flat<Variant>()[i];
      if ((x.value == nullptr) != (y.value == nullptr)) return false;
      if (x.value != nullptr && x.value->ToString() != y.value->ToString()) return false;
    }
    return true;
  }
  return std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

// Returns a tensor of the given shape with the elements first, first + step, ...
template <class T>
Tensor Counting(const Shape& shape, double first = 0, double step = 1) {
  Tensor tensor(kDTypeOf<T>, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.mutable_flat<T>()[i] = static_cast<T>(first + static_cast<double>(i) * step);
  }
  return tensor;
}

}  // namespace penstock
