// SPDX-License-Identifier: Apache-2.0
//
// One: the bytes of the number 1 in any numeric dtype (true for bool).
#pragma once

#include <complex>
#include <cstring>

#include "core/base/check.h"
#include "core/tensor/dtype.h"

namespace penstock {

struct ElementBytes {
  alignas(16) unsigned char bytes[16] = {};
};

template <class T>
ElementBytes BytesOf(const T& value) {
  static_assert(sizeof(T) <= sizeof(ElementBytes));
  ElementBytes element;
  memcpy(element.bytes, &value, sizeof value);
  return element;
}

// Returns the bytes of 1. REQUIRES: a number type or bool.
inline ElementBytes One(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return BytesOf(1.0f);
    case DType::kDouble:
      return BytesOf(1.0);
    case DType::kHalf:
      return BytesOf(half(1.0f));
    case DType::kBfloat16:
      return BytesOf(bfloat16(1.0f));
    case DType::kComplex64:
      return BytesOf(std::complex<float>(1));
    case DType::kComplex128:
      return BytesOf(std::complex<double>(1));
    case DType::kBool:
      return BytesOf(true);
    default:
      CHECK(IsInteger(dtype), "one in ", Name(dtype));
      return BytesOf(uint64_t{1});  // little-endian: a prefix is the 1 of a narrower type
  }
}

}  // namespace penstock
