// SPDX-License-Identifier: Apache-2.0
//
// Tests convolution of volumes. The expected numbers are TensorFlow's.
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

template <class T>
Tensor Numbers(const Shape& shape, const std::vector<float>& values) {
  Tensor t(kDTypeOf<T>, shape);
  for (size_t i = 0; i < values.size(); ++i) t.mutable_data<T>()[i] = T(values[i]);
  return t;
}
template <class T>
std::vector<float> Values(const Tensor& t) {
  return {t.flat<T>().begin(), t.flat<T>().end()};
}

StatusOr<Tensor> Conv(const char* op, std::vector<Tensor> inputs, const char* padding = "SAME") {
  OpRunner run(op);
  run.Attr("strides", std::vector<int64_t>{1, 1, 1, 2, 1}).Attr("padding", padding);
  for (Tensor& input : inputs) run.In(std::move(input));
  return run.Run1();
}

template <class T>
class Conv3DTest : public testing::Test {};
using Types = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(Conv3DTest, Types);

TYPED_TEST(Conv3DTest, SlidesOverDepthToo) {
  using T = TypeParam;
  const Tensor x = Numbers<T>({1, 3, 2, 2, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor w = Numbers<T>({2, 2, 2, 1, 1}, {1, -1, 2, 0, 1, 3, -2, 1});
  const auto y = Conv("Conv3D", {x, w});
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ(y->shape(), Shape({1, 3, 2, 1, 1}));
  EXPECT_THAT(Values<T>(*y), ElementsAre(17, 26, 37, 42, 19, -1));
  const auto dx = Conv("Conv3DBackpropInputV2", {Tensor::Vector<int32_t>({1, 3, 2, 2, 1}), w, *y});
  ASSERT_TRUE(dx.ok()) << dx.status();
  EXPECT_THAT(Values<T>(*dx), ElementsAre(17, -17, 60, -26, 54, 14, 108, 53, 56, 92, 5, 164));
  const auto dw = Conv("Conv3DBackpropFilterV2", {x, Tensor::Vector<int32_t>({2, 2, 2, 1, 1}), *y});
  ASSERT_TRUE(dw.ok()) << dw.status();
  // The sums exceed 256. Not every integer above 256 is a bfloat16.
  const std::vector<float> exact = {594, 734, 446, 519, 940, 1062, 472, 526};
  const float error = std::is_same_v<T, bfloat16> ? 4 : std::is_same_v<T, half> ? 1 : 0;
  EXPECT_THAT(Values<T>(*dw), Pointwise(FloatNear(error + 1e-3f), exact));
}

TEST(Conv3DTest, TheFirstVersionsOfTheGradientsTakeATensorForItsShape) {
  const Tensor x = Numbers<float>({1, 2, 1, 2, 1}, {1, 2, 3, 4});
  const Tensor w = Numbers<float>({2, 1, 2, 1, 1}, {1, 2, 3, 4});
  const Tensor dy = Numbers<float>({1, 1, 1, 1, 1}, {10});
  EXPECT_THAT(Conv("Conv3DBackpropInput", {x, w, dy}, "VALID")->flat<float>(),
              ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(Conv("Conv3DBackpropFilter", {x, w, dy}, "VALID")->flat<float>(),
              ElementsAre(10, 20, 30, 40));
}

TEST(Conv3DTest, MistakesAreNamed) {
  const Tensor x(DType::kFloat, {1, 3, 2, 2, 2}), w(DType::kFloat, {2, 2, 2, 1, 1});
  const auto message = [](const StatusOr<Tensor>& t) { return std::string(t.status().message()); };
  EXPECT_THAT(message(Conv("Conv3D", {x, w})), HasSubstr("must equal filter depth: 2 vs 1"));
  EXPECT_THAT(
      message(Conv("Conv3DBackpropInputV2", {Tensor::Vector<int32_t>({1, 3, -2, 2, 1}), w, x})),
      HasSubstr("-2"));
  EXPECT_THAT(message(Conv("Conv3DBackpropInputV2", {Tensor::Vector<int32_t>({1, 3, 2, 1}), w, x})),
              HasSubstr("5 sizes"));
}

// Both taps of each row are in the padding, a thousand million elements away.
TEST(Conv3DTest, DilationsMayBeLargerThanWhatOneDnnCounts) {
  const auto y = OpRunner("Conv3D")
                     .In(Numbers<float>({1, 1, 3, 1, 1}, {1, 2, 3}))
                     .In(Numbers<float>({1, 2, 1, 1, 1}, {5, 7}))
                     .Attr("strides", std::vector<int64_t>{1, 1, 1, 1, 1})
                     .Attr("dilations", std::vector<int64_t>{1, 1, 2147483647, 1, 1})
                     .Attr("padding", "SAME")
                     .Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(Values<float>(*y), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace penstock
