// SPDX-License-Identifier: Apache-2.0
//
// Tests the second derivative of FusedBatchNorm. Central differences cannot check it, because the
// op has no double type. The expected numbers are TensorFlow's derivatives of the formula in
// elementary ops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/gradients/gradients.h"
#include "core/graph/builder.h"
#include "distributed/session/session.h"

namespace penstock {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

struct Expected {
  bool training;
  std::vector<float> dy, x, scale;
};

class BatchNormSecondDerivative : public testing::TestWithParam<Expected> {
 protected:
  Output Image(const std::vector<float>& values) {
    return Constant(b_, Tensor::Of<float>({3, 1, 1, 2}, values));
  }
  Output PerChannel(const std::vector<float>& values) {
    return Constant(b_, Tensor::Vector(values));
  }
  GraphBuilder b_;
};

TEST_P(BatchNormSecondDerivative, IsThatOfTheFormula) {
  const bool training = GetParam().training;
  const Output dy = Image({1, -1, 2, 0, 1, 3}), x = Image({1, 2, 4, 3, 0, 5});
  const Output scale = PerChannel({2, 0.5});
  Output mean = PerChannel({2, 3}), variance = PerChannel({2, 4});
  if (training) {
    mean = PerChannel({5.f / 3, 10.f / 3});
    variance = PerChannel({26.f / 9, 14.f / 9});
  }
  const Outputs d = CallN("FusedBatchNormGradV3", {dy, x, scale, mean, variance, PerChannel({})},
                          {{"is_training", training}, {"epsilon", 0.01f}});
  const auto total = [&](Output y) {
    return Sum(Reshape(y, Constant(b_, Tensor::Vector<int32_t>({-1}))),
               Constant(b_, Tensor::Vector<int32_t>({0})));
  };
  const Output loss = total(d[0] * Image({1, 2, -1, 1, 3, -2})) +
                      total(d[1] * PerChannel({0.5, -1})) + total(d[2] * PerChannel({1, 2}));
  const auto gradients = AddGradients(b_, {loss}, {dy, x, scale});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  const auto session = NewLocalSession({});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ((*session)->Extend(b_.graph()), OkStatus());
  const std::vector<float>* expected[] = {&GetParam().dy, &GetParam().x, &GetParam().scale};
  for (int i = 0; i < 3; ++i) {
    std::vector<Tensor> values;
    ASSERT_EQ((*session)->Run({}, {}, {(*gradients)[i].values.name()}, {}, &values, nullptr),
              OkStatus());
    EXPECT_THAT(values[0].flat<float>(), Pointwise(FloatNear(1e-5f), *expected[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    TrainingAndInference, BatchNormSecondDerivative,
    testing::Values(
        Expected{
            true,
            {0.08384514f, 3.0131569f, 1.8572117f, 2.3531916f, 1.0589437f, 0.63365138f},
            {-0.0058082342f, 0.02223596f, -0.036457658f, -0.064067811f, 0.042265534f, 0.041831791f},
            {0.085995227f, -0.10096595f}},
        Expected{false,
                 {2.0580184f, 2.9987526f, 0.29465437f, 2.2496881f, 4.5267281f, 0.50187147f},
                 {0.35267282f, 0.49937618f, 0.70534563f, 0, 0.35267282f, -1.4981285f},
                 {1.4106913f, -3.9950094f}}));

}  // namespace
}  // namespace penstock
