// SPDX-License-Identifier: Apache-2.0
//
// Tests losses against the values of tf.compat.v1.losses (which computes in float32).
#include "client/losses/losses.h"

#include <cmath>

#include "client/gradients.h"
#include "client/program.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using Values = std::vector<double>;

class LossesTest : public testing::Test {
 protected:
  Output Doubles(const Shape& shape, const Values& values) {
    return Constant(program, Tensor::Of<double>(shape, values));
  }
  // Returns the sigmoid, softmax, softmax by class numbers, hinge, Huber and squared-error losses.
  Outputs All(const LossOptions& options, const LossOptions& by_row) {
    return {
        SigmoidCrossEntropy(labels, logits, options),
        SoftmaxCrossEntropy(Doubles({3, 2}, {0.2, 0.8, 1, 0, 0.5, 0.5}), logits, by_row),
        SoftmaxCrossEntropy(Constant(program, Tensor::Vector<int64_t>({1, 0, 1})), logits, by_row),
        Hinge(labels, logits, options),
        Huber(labels, logits, 1.2, options),
        SquaredError(labels, logits, options)};
  }
  Values Fetch(const Outputs& outputs) {
    auto session = Session::New(program);
    EXPECT_TRUE(session.ok()) << session.status();
    const auto tensors = (*session)->Run({outputs.begin(), outputs.end()});
    EXPECT_TRUE(tensors.ok()) << tensors.status();
    Values values;
    for (const Tensor& tensor : *tensors) {
      for (const double value : tensor.flat<double>()) values.push_back(value);
    }
    return values;
  }
  static void ExpectNear(const Values& values, const Values& want) {
    ASSERT_EQ(values.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(values[i], want[i], 1e-6 * std::max(1.0, std::abs(want[i]))) << i;
    }
  }

  Program program;
  Output labels = Doubles({3, 2}, {0, 1, 1, 0, 1, 1});
  Output logits = Doubles({3, 2}, {0, 2.5, -1.5, 0.7, 40, -40});
};

TEST_F(LossesTest, AreTensorFlows) {
  ExpectNear(Fetch(All({}, {})),
             {7.262773037, 14.29465771, 27.46132469, 7.700000286, 16.36083412, 535.164978});
  const Output column = Doubles({3, 1}, {1, 0, 2.5}), row = Doubles({3}, {1, 0, 2.5});
  ExpectNear(Fetch(All({.weights = column}, {.weights = row})),
             {25.19300842, 50.28944397, 100.039444, 25.875, 59.37000275, 2001.8125});
  ExpectNear(Fetch(All({.weights = column, .reduction = Reduction::kSum},
                       {.weights = row, .reduction = Reduction::kSum})),
             {100.7720337, 100.5788879, 200.0788879, 103.5, 237.480011, 8007.25});
}

TEST_F(LossesTest, WithoutReductionEachElementHasItsOwn) {
  const Output losses = SquaredError(labels, logits, {.reduction = Reduction::kNone});
  EXPECT_EQ(losses.shape(), PartialShape({3, 2}));
  ExpectNear(Fetch({losses}), {0, 2.25, 6.25, 0.49, 39 * 39, 41 * 41});
}

TEST_F(LossesTest, WeightsThatAreAllZeroMakeNoLoss) {
  ExpectNear(Fetch({Hinge(labels, logits, {.weights = ZerosLike(labels)})}), {0});
}

TEST_F(LossesTest, SigmoidCrossEntropyHasItsSlopeEverywhere) {
  const Output x = Doubles({5}, {0, -800, 800, 20, -3}), z = Doubles({5}, {1, 0, 1, 0, 0.25});
  const Output loss = SigmoidCrossEntropy(z, x, {.reduction = Reduction::kSum});
  const auto gradients = Gradients(program, {loss}, {x});
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  ExpectNear(Fetch({gradients[0].values}), {-0.5, 0, 0, sigmoid(20), sigmoid(-3) - 0.25});
}

}  // namespace
}  // namespace penstock::client
