// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/float16.h"

#include <cmath>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// Uses the compiler's own binary16, an independent implementation.
uint16_t ReferenceHalf(float f) {
  const _Float16 h = static_cast<_Float16>(f);
  uint16_t bits;
  memcpy(&bits, &h, sizeof bits);
  return bits;
}

float ReferenceFloat(uint16_t bits) {
  _Float16 h;
  memcpy(&h, &bits, sizeof h);
  return static_cast<float>(h);
}

// Rounds to nearest even by looking at both neighbours.
uint16_t ReferenceBfloat16(float f) {
  const uint32_t bits = float16::BitsOf(f);
  const uint16_t below = static_cast<uint16_t>(bits >> 16);  // towards zero
  const uint32_t rest = bits & 0xffff;
  if (rest < 0x8000 || (rest == 0x8000 && (below & 1) == 0)) return below;
  return below + 1;
}

bool IsNan(uint16_t half_bits) { return (half_bits & 0x7fff) > 0x7c00; }

TEST(Half, EveryValueToFloat) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float got = half::FromBits(bits);
    const float want = ReferenceFloat(bits);
    if (IsNan(bits)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(float16::BitsOf(got), float16::BitsOf(want)) << bits;
    }
  }
}

TEST(Half, EveryValueBack) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    if (IsNan(bits)) {
      ASSERT_TRUE(IsNan(half(float(half::FromBits(bits))).bits));
    } else {
      ASSERT_EQ(half(float(half::FromBits(bits))).bits, bits);
    }
  }
}

// Checks every value of the type, the midpoint to the next value, and the floats around both,
// because rounding changes there.
template <class Check>
void ForFloatsNear(Check check, float (*value_of)(uint16_t)) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float value = value_of(bits), next = value_of(bits + 1);
    if (std::isnan(value) || std::isnan(next)) continue;
    const float middle = value + (next - value) / 2;
    for (float center : {value, middle}) {
      const uint32_t center_bits = float16::BitsOf(center);
      for (uint32_t delta : {-2u, -1u, 0u, 1u, 2u}) {
        const float f = float16::FloatOf(center_bits + delta);
        if (!std::isnan(f)) check(f);
      }
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  ForFloatsNear([](float f) { ASSERT_EQ(half(f).bits, ReferenceHalf(f)) << f; },
                [](uint16_t bits) -> float { return half::FromBits(bits); });
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1009) {
    const float f = float16::FloatOf(static_cast<uint32_t>(bits));
    if (!std::isnan(f)) {
      ASSERT_EQ(half(f).bits, ReferenceHalf(f)) << bits;
    }
  }
  EXPECT_TRUE(IsNan(half(NAN).bits));
  EXPECT_TRUE(IsNan(half(float16::FloatOf(0xffa00001)).bits));  // a negative signalling nan
}

TEST(Bfloat16, RoundsToNearestEven) {
  ForFloatsNear([](float f) { ASSERT_EQ(bfloat16(f).bits, ReferenceBfloat16(f)) << f; },
                [](uint16_t bits) -> float { return bfloat16::FromBits(bits); });
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1009) {
    const float f = float16::FloatOf(static_cast<uint32_t>(bits));
    if (!std::isnan(f)) {
      ASSERT_EQ(bfloat16(f).bits, ReferenceBfloat16(f)) << bits;
    }
  }
  EXPECT_TRUE(std::isnan(float(bfloat16(NAN))));
  EXPECT_TRUE(std::isnan(float(bfloat16(float16::FloatOf(0x7f800001)))));  // stays a nan
}

TEST(Bfloat16, EveryValueBack) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float f = bfloat16::FromBits(bits);
    ASSERT_EQ(float16::BitsOf(f), uint32_t(bits) << 16);
    if (!std::isnan(f)) {
      ASSERT_EQ(bfloat16(f).bits, bits);
    }
  }
}

template <class T>
class Float16Test : public ::testing::Test {};
using Types = ::testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(Float16Test, Types);

TYPED_TEST(Float16Test, ArithmeticGoesThroughFloat) {
  using T = TypeParam;
  const T a(3.0f), b(2);
  EXPECT_EQ(float(a + b), 5.0f);
  EXPECT_EQ(float(a - b), 1.0f);
  EXPECT_EQ(float(a * b), 6.0f);
  EXPECT_EQ(float(a / b), 1.5f);
  EXPECT_EQ(float(-a), -3.0f);
  T sum(0);
  sum += a;
  sum *= b;
  sum -= T(1);
  sum /= b;
  EXPECT_EQ(float(sum), 2.5f);
  EXPECT_TRUE(b < a && a > b && a >= a && a <= a && a == a && a != b);
  EXPECT_EQ(T(0.0f), T(-0.0f));
  EXPECT_NE(T(NAN), T(NAN));
}

TYPED_TEST(Float16Test, Limits) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  EXPECT_TRUE(std::isfinite(float(Limits::max())));
  EXPECT_TRUE(std::isinf(float(T::FromBits(Limits::max().bits + 1))));
  EXPECT_EQ(float(Limits::lowest()), -float(Limits::max()));
  EXPECT_TRUE(std::isinf(float(Limits::infinity())));
  EXPECT_TRUE(std::isnan(float(Limits::quiet_NaN())));
  EXPECT_EQ(float(Limits::epsilon()), std::ldexp(1.0f, 1 - Limits::digits));
  EXPECT_NE(T(1.0f + float(Limits::epsilon())), T(1.0f));
  EXPECT_GT(float(Limits::min()), float(Limits::denorm_min()));
  EXPECT_GT(float(Limits::denorm_min()), 0.0f);
}

}  // namespace
}  // namespace penstock
