// SPDX-License-Identifier: Apache-2.0
//
// Tests sampled losses and their gradients against TensorFlow's, for given candidates; and training
// with sampled classes.
#include "client/losses/sampled.h"

#include <cmath>
#include <set>

#include "client/losses/losses.h"
#include "client/optimizers.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

constexpr int kClasses = 6, kUnits = 2;

class SampledTest : public testing::TestWithParam<int> {
 protected:
  // weights[i][j] = sin(1.3 i + 0.8 j), biases[i] = 0.1 i.
  SampledTest()
      : table{{program, "weights", {kClasses, kUnits}, Formula(), {.parts = GetParam()}},
              {program, "biases", {kClasses}, Formula(), {.parts = GetParam()}}} {}
  static Initializer Formula() {
    return [](GraphSink& sink, DType, const InitialShape& shape) {
      std::vector<float> values;
      for (int64_t row = 0; row < shape.shape.dim(0); ++row) {
        const auto i = static_cast<double>(shape.start + row);
        if (shape.shape.rank() == 1) values.push_back(static_cast<float>(0.1 * i));
        for (int j = 0; shape.shape.rank() == 2 && j < kUnits; ++j) {
          values.push_back(static_cast<float>(std::sin(1.3 * i + 0.8 * j)));
        }
      }
      return Constant(sink, Tensor::Of<float>(shape.shape, values));
    };
  }
  Output Floats(const Shape& shape, const std::vector<float>& values) {
    return Constant(program, Tensor::Of<float>(shape, values));
  }
  Output Inputs() { return Floats({3, 2}, {0.5, -1, 2, 0.25, -0.7, 0.9}); }
  Output Labels() { return Constant(program, Tensor::Of<int64_t>({3, 2}, {1, 4, 3, 3, 0, 5})); }
  Candidates GivenCandidates() {
    return {Constant(program, Tensor::Vector<int64_t>({4, 0, 2})),
            Floats({3, 2}, {0.6, 0.3, 0.4, 0.4, 0.9, 0.2}), Floats({3}, {0.3, 0.9, 0.5})};
  }
  void Start() {
    auto made = Session::New(program);
    ASSERT_TRUE(made.ok()) << made.status();
    session = *std::move(made);
    ASSERT_TRUE(session->Execute(program.Initialize(program.globals())).ok());
  }
  void ExpectNear(Output output, const std::vector<float>& want) {
    const auto tensor = session->Fetch(output);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    ASSERT_EQ(tensor->num_elements(), std::ssize(want));
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(tensor->flat<float>()[i], want[i], 2e-6) << i;
    }
  }

  Program program;
  ClassTable table;
  std::unique_ptr<Session> session;
};
INSTANTIATE_TEST_SUITE_P(Parts, SampledTest, testing::Values(1, 2));

TEST_P(SampledTest, AreTensorFlows) {
  const Output softmax =
      SampledSoftmax(table, Labels(), Inputs(), {.candidates = GivenCandidates()});
  const Output contrast =
      NoiseContrastive(table, Labels(), Inputs(),
                       {.remove_accidental_hits = false, .candidates = GivenCandidates()});
  Outputs handles;
  for (const auto* variable : {&table.weights, &table.biases}) {
    for (const Variable& part : variable->parts()) handles.push_back(part.handle());
  }
  const auto gradients = Gradients(program, {softmax}, handles);
  const auto of = [&](size_t first) {
    Outputs parts;
    for (int i = 0; i < GetParam(); ++i) {
      EXPECT_TRUE(gradients[first + i].sparse());
      parts.push_back(Dense(gradients[first + i]));
    }
    return parts.size() == 1 ? parts[0]
                             : ConcatV2(parts, Constant(program, Tensor::Scalar<int32_t>(0)));
  };
  const Output by_weights = of(0), by_biases = of(GetParam());
  Start();
  ExpectNear(softmax, {1.4779192, 2.6992745, 1.5164067});
  ExpectNear(contrast, {5.3456678, 4.8618879, 6.2822809});
  ExpectNear(by_weights,
             {0.58876097, -0.39633545, -0.1877875, 0.37557501, 1.4665848, -0.19404323, -1.7309829,
              -0.21637286, -0.074458703, 0.35131216, -0.062116701, 0.079864331});
  ExpectNear(by_biases,
             {-0.22991037, -0.37557501, 1.1066279, -0.86549145, 0.27561077, 0.088738143});
}

TEST_P(SampledTest, TrainingWithDrawnClassesLowersTheWholeLoss) {
  const Output labels = Constant(program, Tensor::Of<int64_t>({3, 1}, {1, 3, 5}));
  const Output whole =
      SoftmaxCrossEntropy(Constant(program, Tensor::Vector<int64_t>({1, 3, 5})),
                          MatMul(Inputs(), table.weights, false, true) + table.biases);
  for (const bool log_uniform : {true, false}) {
    Adagrad optimizer(0.3);
    const Output train = optimizer.Minimize(
        program, Sum(SampledSoftmax(table, labels, Inputs(),
                                    {.sampled = 3, .log_uniform = log_uniform, .seed = 7}),
                     Constant(program, Tensor::Scalar<int32_t>(0))));
    Start();
    const float before = session->Fetch(whole)->scalar<float>();
    for (int i = 0; i < 60; ++i) {
      const Status trained = session->Execute(train);
      ASSERT_TRUE(trained.ok()) << trained;
    }
    EXPECT_LT(session->Fetch(whole)->scalar<float>(), 0.6 * before);
  }
}

TEST_P(SampledTest, LabelsWithoutAKnownNumberAreAMistake) {
  SampledSoftmax(table, Constant(program, Tensor::Vector<int64_t>({1, 2})), Inputs());
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("expected int64[batch, labels]"));
}

}  // namespace
}  // namespace penstock::client
