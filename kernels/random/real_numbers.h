// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes tensors of half, float, double, int32 or int64 as doubles, for ops that compute
// in double for every type. Thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/tensor/tensor.h"

namespace penstock {

inline const DTypes& ParameterTypes() {
  static const DTypes types = {DType::kHalf, DType::kFloat, DType::kDouble, DType::kInt32,
                               DType::kInt64};
  return types;
}

// Returns element i as a double. REQUIRES: a type of ParameterTypes().
inline double NumberAt(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kHalf:
      return static_cast<double>(static_cast<float>(tensor.data<half>()[i]));
    case DType::kFloat:
      return tensor.data<float>()[i];
    case DType::kInt32:
      return tensor.data<int32_t>()[i];
    case DType::kInt64:
      return static_cast<double>(tensor.data<int64_t>()[i]);
    default:
      return tensor.data<double>()[i];
  }
}

// Returns the largest double that the type holds.
inline double LargestOf(DType dtype) {
  switch (dtype) {
    case DType::kHalf:
      return 65504;
    case DType::kFloat:
      return std::numeric_limits<float>::max();
    case DType::kInt32:
      return std::numeric_limits<int32_t>::max();
    case DType::kInt64:
      return 9223372036854774784.0;  // the double below 2^63
    default:
      return std::numeric_limits<double>::max();
  }
}

// Stores a number as element i. For an integer type, cuts off the fraction, after clamping the
// number to [-largest, largest] with the type's LargestOf.
inline void StoreNumber(double value, Tensor* tensor, int64_t i) {
  const double largest = LargestOf(tensor->dtype());
  switch (tensor->dtype()) {
    case DType::kHalf:
      tensor->mutable_data<half>()[i] = half(static_cast<float>(value));
      return;
    case DType::kFloat:
      tensor->mutable_data<float>()[i] = static_cast<float>(value);
      return;
    case DType::kInt32:
      tensor->mutable_data<int32_t>()[i] =
          static_cast<int32_t>(std::clamp(value, -largest, largest));
      return;
    case DType::kInt64:
      tensor->mutable_data<int64_t>()[i] =
          static_cast<int64_t>(std::clamp(value, -largest, largest));
      return;
    default:
      tensor->mutable_data<double>()[i] = value;
  }
}

}  // namespace penstock
