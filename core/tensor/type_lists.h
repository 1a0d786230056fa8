// SPDX-License-Identifier: Apache-2.0
//
// Lists of C++ types for KERNEL, like the DTypes lists for OP in core/tensor/dtype.h.
#pragma once

#include <complex>
#include <cstdint>

#include "core/tensor/dtype.h"

#define FLOATING_TYPES half, bfloat16, float, double
#define INTEGER_TYPES int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
#define SIGNED_INTEGER_TYPES int8_t, int16_t, int32_t, int64_t
#define COMPLEX_TYPES std::complex<float>, std::complex<double>
#define REAL_TYPES FLOATING_TYPES, INTEGER_TYPES
#define SIGNED_REAL_TYPES FLOATING_TYPES, SIGNED_INTEGER_TYPES
#define FLOATING_OR_COMPLEX_TYPES FLOATING_TYPES, COMPLEX_TYPES
#define SIGNED_NUMBER_TYPES SIGNED_REAL_TYPES, COMPLEX_TYPES
#define NUMBER_TYPES REAL_TYPES, COMPLEX_TYPES
#define QUANTIZED_TYPES qint8, quint8, qint16, quint16, qint32
#define PLAIN_TYPES NUMBER_TYPES, bool, QUANTIZED_TYPES

namespace penstock {

template <class... Ts>
DTypes TypesOf() {
  return {kDTypeOf<Ts>...};
}
inline const DTypes kFloatingOrComplex = TypesOf<FLOATING_OR_COMPLEX_TYPES>();
inline const DTypes kSignedReal = TypesOf<SIGNED_REAL_TYPES>();
inline const DTypes kSignedNumber = TypesOf<SIGNED_NUMBER_TYPES>();

}  // namespace penstock
