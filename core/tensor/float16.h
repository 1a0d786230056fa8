// SPDX-License-Identifier: Apache-2.0
//
// half (IEEE binary16) and bfloat16 as storage types: they convert to and from float, rounding to
// nearest even, and every operator computes in float. These are not Eigen's types, because
// including Eigen would slow down every compilation.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__CUDACC__)
#define PENSTOCK_HOST_DEVICE __host__ __device__
#else
#define PENSTOCK_HOST_DEVICE
#endif

namespace penstock {

namespace float16 {
PENSTOCK_HOST_DEVICE inline uint32_t BitsOf(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}
PENSTOCK_HOST_DEVICE inline float FloatOf(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
PENSTOCK_HOST_DEVICE inline float HalfToFloat(uint16_t h) {
  const uint32_t sign = uint32_t{h} << 16 & 0x80000000u;
  const uint32_t rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return FloatOf(sign | 0x7f800000u | (rest & 0x3ffu) << 13);  // inf, nan
  if (rest >= 0x0400u) return FloatOf(sign | ((rest << 13) + 0x38000000u));         // normal
  return FloatOf(sign | BitsOf(static_cast<float>(rest) * 0x1p-24f));               // subnormal, 0
}
PENSTOCK_HOST_DEVICE inline uint16_t FloatToHalf(float f) {
  const uint32_t bits = BitsOf(f);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7e00u;   // nan, quiet
  if (rest >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  if (rest < 0x38800000u) {                        // subnormal: the float adder does the rounding
    return sign | static_cast<uint16_t>(BitsOf(FloatOf(rest) + 0.5f) - 0x3f000000u);
  }
  return sign | static_cast<uint16_t>((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13);
}
PENSTOCK_HOST_DEVICE inline uint16_t FloatToBfloat16(float f) {
  const uint32_t bits = BitsOf(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
}  // namespace float16

#define PENSTOCK_FLOAT16(Type, from_float, to_float)                                               \
  struct Type {                                                                                    \
    uint16_t bits;                                                                                 \
    Type() = default;                                                                              \
    PENSTOCK_HOST_DEVICE explicit Type(float f) : bits(from_float) {}                              \
    template <class N>                                                                             \
    PENSTOCK_HOST_DEVICE explicit Type(N n) : Type(static_cast<float>(n)) {}                       \
    PENSTOCK_HOST_DEVICE operator float() const { return to_float; }                               \
    static PENSTOCK_HOST_DEVICE constexpr Type FromBits(uint16_t b) {                              \
      Type t;                                                                                      \
      t.bits = b;                                                                                  \
      return t;                                                                                    \
    }                                                                                              \
    PENSTOCK_HOST_DEVICE Type operator-() const { return FromBits(bits ^ 0x8000u); }               \
    PENSTOCK_HOST_DEVICE Type& operator+=(Type o) {                                                \
      return *this = Type(float(*this) + float(o));                                                \
    }                                                                                              \
    PENSTOCK_HOST_DEVICE Type& operator-=(Type o) {                                                \
      return *this = Type(float(*this) - float(o));                                                \
    }                                                                                              \
    PENSTOCK_HOST_DEVICE Type& operator*=(Type o) {                                                \
      return *this = Type(float(*this) * float(o));                                                \
    }                                                                                              \
    PENSTOCK_HOST_DEVICE Type& operator/=(Type o) {                                                \
      return *this = Type(float(*this) / float(o));                                                \
    }                                                                                              \
  };                                                                                               \
  PENSTOCK_HOST_DEVICE inline Type operator+(Type a, Type b) { return Type(float(a) + float(b)); } \
  PENSTOCK_HOST_DEVICE inline Type operator-(Type a, Type b) { return Type(float(a) - float(b)); } \
  PENSTOCK_HOST_DEVICE inline Type operator*(Type a, Type b) { return Type(float(a) * float(b)); } \
  PENSTOCK_HOST_DEVICE inline Type operator/(Type a, Type b) { return Type(float(a) / float(b)); } \
  PENSTOCK_HOST_DEVICE inline bool operator==(Type a, Type b) { return float(a) == float(b); }     \
  PENSTOCK_HOST_DEVICE inline bool operator!=(Type a, Type b) { return float(a) != float(b); }     \
  PENSTOCK_HOST_DEVICE inline bool operator<(Type a, Type b) { return float(a) < float(b); }       \
  PENSTOCK_HOST_DEVICE inline bool operator>(Type a, Type b) { return float(a) > float(b); }       \
  PENSTOCK_HOST_DEVICE inline bool operator<=(Type a, Type b) { return float(a) <= float(b); }     \
  PENSTOCK_HOST_DEVICE inline bool operator>=(Type a, Type b) { return float(a) >= float(b); }

PENSTOCK_FLOAT16(half, float16::FloatToHalf(f), float16::HalfToFloat(bits))
PENSTOCK_FLOAT16(bfloat16, float16::FloatToBfloat16(f), float16::FloatOf(uint32_t{bits} << 16))
#undef PENSTOCK_FLOAT16

}  // namespace penstock

// Without these specialisations, generic code would get zeros from numeric_limits without an error.
#define PENSTOCK_LIMITS(Type, kDigits, kMin, kMax, kEpsilon, kInfinity, kNan, kDenormMin)         \
  template <>                                                                                     \
  struct std::numeric_limits<penstock::Type> {                                                    \
    static constexpr bool is_specialized = true, is_signed = true, is_iec559 = true;              \
    static constexpr bool is_integer = false, is_exact = false, has_infinity = true;              \
    static constexpr bool has_quiet_NaN = true;                                                   \
    static constexpr int digits = kDigits, radix = 2;                                             \
    static constexpr penstock::Type min() { return penstock::Type::FromBits(kMin); }              \
    static constexpr penstock::Type max() { return penstock::Type::FromBits(kMax); }              \
    static constexpr penstock::Type lowest() { return penstock::Type::FromBits(kMax | 0x8000); }  \
    static constexpr penstock::Type epsilon() { return penstock::Type::FromBits(kEpsilon); }      \
    static constexpr penstock::Type infinity() { return penstock::Type::FromBits(kInfinity); }    \
    static constexpr penstock::Type quiet_NaN() { return penstock::Type::FromBits(kNan); }        \
    static constexpr penstock::Type denorm_min() { return penstock::Type::FromBits(kDenormMin); } \
  };
PENSTOCK_LIMITS(half, 11, 0x0400, 0x7bff, 0x1400, 0x7c00, 0x7e00, 0x0001)
PENSTOCK_LIMITS(bfloat16, 8, 0x0080, 0x7f7f, 0x3c00, 0x7f80, 0x7fc0, 0x0001)
#undef PENSTOCK_LIMITS
