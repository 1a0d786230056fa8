// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/agreement.h"

#include <complex>
#include <limits>

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Agreement, RealNumbersMayDifferInTheirLastBits) {
  const Tensor a = Tensor::Vector<float>({1, 1000, 0});
  EXPECT_EQ(Disagreement(a, Tensor::Vector<float>({1.00001f, 1000.005f, 1e-6f})), "");
  EXPECT_EQ(Disagreement(a, Tensor::Vector<float>({1, 1001, 0})),
            "element 1 is float[] 1001, expected float[] 1000");
  EXPECT_NE(Disagreement(Tensor::Scalar<double>(1), Tensor::Scalar<double>(1.00001)), "");
  EXPECT_EQ(Disagreement(Tensor::Scalar(half(1.0f)), Tensor::Scalar(half(1.001f))), "");
  EXPECT_NE(Disagreement(Tensor::Scalar<std::complex<float>>({1, 2}),
                         Tensor::Scalar<std::complex<float>>({1, 3})),
            "");
}

TEST(Agreement, InfinitiesAndNansAreThemselves) {
  const Tensor a = Tensor::Vector<float>({kInfinity, kNan});
  EXPECT_EQ(Disagreement(a, a.Clone()), "");
  EXPECT_NE(Disagreement(a, Tensor::Vector<float>({-kInfinity, kNan})), "");
  EXPECT_NE(Disagreement(a, Tensor::Vector<float>({kInfinity, 1})), "");
  EXPECT_NE(Disagreement(Tensor::Scalar<float>(1), Tensor::Scalar<float>(kNan)), "");
}

TEST(Agreement, EverythingElseIsExact) {
  const Tensor big = Tensor::Scalar<int64_t>(int64_t{1} << 62);
  EXPECT_EQ(Disagreement(big, big.Clone()), "");
  EXPECT_NE(Disagreement(big, Tensor::Scalar<int64_t>((int64_t{1} << 62) + 1)), "");
  EXPECT_NE(Disagreement(Tensor::Scalar(true), Tensor::Scalar(false)), "");
  EXPECT_NE(Disagreement(Tensor::Scalar<std::string>("a"), Tensor::Scalar<std::string>("b")), "");
}

TEST(Agreement, TypesAndShapesCount) {
  EXPECT_NE(Disagreement(Tensor::Scalar<int32_t>(1), Tensor::Scalar<int64_t>(1)), "");
  EXPECT_NE(Disagreement(Tensor::Scalar<float>(1), Tensor::Vector<float>({1})), "");
}

}  // namespace
}  // namespace penstock
