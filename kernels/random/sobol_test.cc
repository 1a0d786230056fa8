// SPDX-License-Identifier: Apache-2.0
//
// Tests Sobol sequences. The expected numbers are those of TensorFlow 2.21.
#include <numeric>
#include <vector>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names

OpCall SobolCall(int dim, int count, int skip, DType dtype = DType::kFloat) {
  return {"SobolSample", {I({}, {dim}), I({}, {count}), I({}, {skip})}, {{"dtype", dtype}}};
}

TEST(SobolTest, TheFirstPoints) {
  ExpectOutputs(SobolCall(5, 4, 0),
                {F({4, 5}, {0.5,  0.5,  0.5,  0.5,  0.5,  0.75,  0.25,  0.25,  0.25,  0.75,
                            0.25, 0.75, 0.75, 0.75, 0.25, 0.375, 0.375, 0.625, 0.875, 0.375})});
}

TEST(SobolTest, LargeIndicesAreRounded) {
  ExpectOutputs(SobolCall(3, 2, 1000000),
                {F({2, 3}, {0.5264749526977539, 0.8119192123413086, 0.32799625396728516,
                            0.7764749526977539, 0.061919212341308594, 0.5779962539672852})});
  ExpectOutputs(SobolCall(2, 1, (1 << 30) - 10), {F({1, 2}, {0.1875, 0.612500011920929})});
  // TensorFlow's numbers are negative from here on.
  ExpectOutputs(SobolCall(2, 1, (1 << 30) - 2), {F({1, 2}, {9.313225746154785e-10, 0.8f})});
}

// A wrong direction number of any dimension would change the sums.
TEST(SobolTest, EveryDimensionAgreesWithTensorFlow) {
  const Tensor x = SobolCall(1111, 2000, 77, DType::kDouble).Run1();
  const double* const numbers = x.data<double>();
  EXPECT_DOUBLE_EQ(std::accumulate(numbers, numbers + x.num_elements(), 0.0), 1110971.7319335938);
  for (const auto& [row, sum] : {std::pair{0, 301092.046875}, {1999, 302362.3271484375}}) {
    double weighted = 0;
    for (int d = 0; d < 1111; ++d) weighted += numbers[row * 1111 + d] * (d + 1);
    EXPECT_DOUBLE_EQ(weighted, sum);
  }
}

// In each dimension, the first 2^k - 1 points and the origin lie in 2^k different intervals.
TEST(SobolTest, PointsAreSpreadEvenly) {
  const Tensor x = SobolCall(1111, 255, 0).Run1();
  for (int d = 0; d < 1111; ++d) {
    std::vector<bool> seen(256);
    for (int i = 0; i < 255; ++i) {
      const int interval = static_cast<int>(x.data<float>()[i * 1111 + d] * 256);
      ASSERT_FALSE(interval == 0 || seen[interval]) << "dimension " << d;
      seen[interval] = true;
    }
  }
}

TEST(SobolTest, Mistakes) {
  SobolCall(0, 1, 0).ExpectError("dim must be at least one");
  SobolCall(1112, 1, 0).ExpectError("dim must be at most 1111");
  SobolCall(1, 0, 0).ExpectError("num_results must be at least one");
  SobolCall(1, 1, -1).ExpectError("skip must be non-negative");
  SobolCall(1, 2000000000, 2000000000).ExpectError("num_results+skip must be less than");
}

}  // namespace
}  // namespace penstock
