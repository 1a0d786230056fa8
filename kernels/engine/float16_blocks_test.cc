// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/float16_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock {
namespace {

// Tests that every 16-bit pattern is unchanged after conversion to float and back; NaN stays NaN.
template <class T>
void RoundTrip(DType dtype) {
  std::vector<T> all(65536), back(65536);
  std::vector<float> floats(65536);
  for (int i = 0; i < 65536; ++i) all[i] = T::FromBits(static_cast<uint16_t>(i));
  Float16ToFloat(dtype, all.data(), floats.data(), 65536);
  FloatToFloat16(dtype, floats.data(), back.data(), 65536);
  for (int i = 0; i < 65536; ++i) {
    const float one = all[i];
    if (std::isnan(one)) {
      EXPECT_TRUE(std::isnan(floats[i]) && std::isnan(static_cast<float>(back[i])));
    } else {
      ASSERT_EQ(floats[i], one);
      ASSERT_EQ(back[i].bits, all[i].bits);
    }
  }
}

TEST(Float16Blocks, RoundTrip) {
  RoundTrip<half>(DType::kHalf);
  RoundTrip<bfloat16>(DType::kBfloat16);
}

TEST(Float16Blocks, RoundsAsTheSingleConversionDoes) {
  std::vector<float> floats;
  for (float f = 1e-9f; f < 1e6f; f *= 1.00037f) floats.push_back(f);
  for (float f : {65504.0f, 65519.0f, 65520.0f, 1.00048828125f, 1.00146484375f, 6e-8f, 2.9e-8f}) {
    floats.push_back(-f);
  }
  std::vector<half> halves(floats.size());
  std::vector<bfloat16> bfloats(floats.size());
  FloatToFloat16(DType::kHalf, floats.data(), halves.data(), floats.size());
  FloatToFloat16(DType::kBfloat16, floats.data(), bfloats.data(), floats.size());
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i].bits, half(floats[i]).bits) << floats[i];
    ASSERT_EQ(bfloats[i].bits, bfloat16(floats[i]).bits) << floats[i];
  }
}

}  // namespace
}  // namespace penstock
