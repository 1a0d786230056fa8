// SPDX-License-Identifier: Apache-2.0
//
// Maps a DType to its C++ type, for tests that make tensors of every type with values.
#pragma once

#include <complex>
#include <string>

#include "core/tensor/dtype.h"

namespace penstock {

// Calls f.operator()<T>() with the element type of `dtype`. Returns false without a call for types
// whose elements are not values (resource, variant).
template <class F>
bool WithElementType(DType dtype, F f) {
  const auto matches = [&]<class T>() {
    if (dtype != kDTypeOf<T>) return false;
    f.template operator()<T>();
    return true;
  };
  const auto any = [&]<class... T>() { return (matches.template operator()<T>() || ...); };
  return any.template
  operator()<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             uint32_t, uint64_t, bool, std::string, std::complex<float>, std::complex<double>,
             qint8, quint8, qint16, quint16, qint32>();
}

}  // namespace penstock
