// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/distinct.h"

#include <cmath>

#include "core/base/check.h"

namespace penstock {
namespace {

template <class T>
ElementKeys FloatKeys(const Tensor& vector) {
  ElementKeys keys;
  keys.bits.resize(vector.num_elements());
  const T* data = vector.data<T>();
  for (size_t i = 0; i < keys.bits.size(); ++i) {
    const auto value = static_cast<double>(data[i]);  // exact for every narrower float type
    if (std::isnan(value)) {
      keys.nan.resize(keys.bits.size());
      keys.nan[i] = true;
    }
    const double key = value == 0 ? 0 : value;
    memcpy(&keys.bits[i], &key, sizeof key);
  }
  return keys;
}

template <class Bits>
ElementKeys BitKeys(const Tensor& vector) {
  ElementKeys keys;
  const auto* data = static_cast<const Bits*>(vector.raw_data());
  keys.bits.assign(data, data + vector.num_elements());
  return keys;
}

}  // namespace

ElementKeys KeysOf(const Tensor& vector) {
  switch (vector.dtype()) {
    case DType::kHalf:
      return FloatKeys<half>(vector);
    case DType::kBfloat16:
      return FloatKeys<bfloat16>(vector);
    case DType::kFloat:
      return FloatKeys<float>(vector);
    case DType::kDouble:
      return FloatKeys<double>(vector);
    default:
      break;
  }
  CHECK(IsInteger(vector.dtype()) || vector.dtype() == DType::kBool, Name(vector.dtype()));
  switch (SizeOf(vector.dtype())) {
    case 1:
      return BitKeys<uint8_t>(vector);
    case 2:
      return BitKeys<uint16_t>(vector);
    case 4:
      return BitKeys<uint32_t>(vector);
    default:
      return BitKeys<uint64_t>(vector);
  }
}

}  // namespace penstock
