// SPDX-License-Identifier: Apache-2.0
//
// Tests gradients through random ops, which central differences cannot check. The expected numbers
// are those of TensorFlow 2.21, which draws the same random numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/gradients/gradients.h"
#include "core/graph/builder.h"
#include "distributed/session/session.h"

namespace penstock {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

class RandomGradientTest : public testing::Test {
 protected:
  // Checks the gradient of the sum of y's elements with respect to x.
  void Expect(Output y, Output x, const std::vector<float>& expected, float tolerance) {
    const auto gradients = AddGradients(b_, {y}, {x});
    ASSERT_EQ(gradients.status(), OkStatus());
    ASSERT_EQ(b_.status(), OkStatus());
    const auto session = NewLocalSession({});
    ASSERT_EQ(session.status(), OkStatus());
    ASSERT_EQ((*session)->Extend(b_.graph()), OkStatus());
    std::vector<Tensor> values;
    ASSERT_EQ((*session)->Run({}, {}, {(*gradients)[0].values.name()}, {}, &values, nullptr),
              OkStatus());
    EXPECT_THAT(values[0].flat<float>(), Pointwise(FloatNear(tolerance), expected));
  }
  GraphBuilder b_;
};

TEST_F(RandomGradientTest, OfGammaNumbers) {
  const Output alpha = Constant(b_, Tensor::Of<float>({2, 2}, {0.5f, 2, 3, 10}));
  const Output shape = Constant(b_, Tensor::Vector<int32_t>({2, 3}));
  const Output y = Call("RandomGamma", {shape, alpha}, {{"seed", 3}, {"seed2", 5}});
  Expect(Square(y), alpha, {8.157271f, 26.730309f, 27.736748f, 94.49339f}, 2e-4f);
}

TEST_F(RandomGradientTest, OfFractionalPooling) {
  Tensor numbers(DType::kFloat, {1, 5, 7, 1}), sines(DType::kFloat, {1, 5, 7, 1});
  for (int i = 0; i < 35; ++i) {
    numbers.mutable_flat<float>()[i] = static_cast<float>(i);
    sines.mutable_flat<float>()[i] = std::sin(static_cast<float>(i));
  }
  const Attrs attrs = {{"pooling_ratio", std::vector<float>{1, 1.44f, 1.73f, 1}},
                       {"pseudo_random", true},
                       {"overlapping", true},
                       {"deterministic", true},
                       {"seed", 3},
                       {"seed2", 1}};
  const Output weights =
      Constant(b_, Tensor::Of<float>({1, 3, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  const Output x = Constant(b_, sines);
  Expect(Call("FractionalMaxPool", {x}, attrs) * weights, x,
         {0, 0, 2, 0, 0, 0, 0, 0, 1, 6,  0, 0, 0, 7, 5,  0,  0, 0,
          0, 0, 0, 9, 0, 0, 0, 0, 0, 27, 0, 0, 0, 0, 10, 11, 0},
         1e-4f);
  const Output z = Constant(b_, numbers);
  Expect(Call("FractionalAvgPool", {z}, attrs) * weights, z,
         {0.166667f, 0.166667f, 0.5f,     0.333333f, 0.833333f, 0.5f,      2.5f,
          0.722222f, 0.722222f, 1.72222f, 1,         2.27778f,  1.27778f,  5.94444f,
          0.555556f, 0.555556f, 1.22222f, 0.666667f, 1.44444f,  0.777778f, 3.44444f,
          2.05556f,  2.05556f,  4.38889f, 2.33333f,  4.94444f,  2.61111f,  11.2778f,
          1.5f,      1.5f,      3.16667f, 1.66667f,  3.5f,      1.83333f,  7.83333f},
         1e-4f);
}

}  // namespace
}  // namespace penstock
