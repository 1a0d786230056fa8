// SPDX-License-Identifier: Apache-2.0
//
// Tests steps of a convnet and of an unrolled LSTM on one thread: the peak is predicted within 10
// %, and with a limit of 60 % of the peak the results are the same.
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

#include "core/gradients/gradients.h"
#include "core/graph/builder.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/memory/one_device.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

Tensor Numbers(const Shape& shape, uint32_t seed, float scale = 1) {
  Tensor numbers(DType::kFloat, shape);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  for (float& number : numbers.mutable_flat<float>()) number = uniform(random);
  return numbers;
}

// A training by gradient descent; the test sets the initial values of the variables.
struct Training {
  Output Feed(const Tensor& value) {
    const Output fed = CallIn(g, "Placeholder", {},
                              {{"dtype", DType::kFloat}, {"shape", PartialShape(value.shape())}});
    step.feeds.emplace_back(fed.name(), value);
    return fed;
  }
  Output Weights(const Shape& shape) {
    const auto seed = static_cast<uint32_t>(variables.size() + 1);
    const Output variable =
        CallIn(g, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(shape)}});
    init.targets.push_back(
        NodeName(Call("Assign", {variable, Constant(g, Numbers(shape, seed, 0.1f))})));
    variables.push_back(variable);
    reads.push_back(Call("Identity", {variable}));
    return reads.back();
  }
  void Finish(Output y, int64_t width) {
    const Output out = MatMul(y, Weights(Shape({width, 1})));
    const Output loss = Mean(Square(out), Constant(g, Tensor::Vector<int32_t>({0, 1})));
    const auto gradients = AddGradients(g, {loss}, reads);
    CHECK_OK(gradients.status());
    for (size_t i = 0; i < variables.size(); ++i) {
      const Output rate = Constant(g, Tensor::Scalar<float>(0.01f));
      step.targets.push_back(
          NodeName(Call("ApplyGradientDescent", {variables[i], rate, (*gradients)[i].values})));
      look.fetches.push_back(variables[i].name());
    }
    step.fetches = {loss.name()};
    CHECK_OK(g.status());
  }
  static std::string NodeName(Output output) { return TensorName::Parse(output.name())->node; }

  GraphBuilder g;
  Outputs variables, reads;
  OneDevice::Step init, step, look;
};

void Convnet(Training* t) {
  constexpr int64_t kBatch = 16, kSide = 28, kChannels = 8;
  const std::vector<int64_t> one = {1, 1, 1, 1};
  Output x = t->Feed(Numbers(Shape({kBatch, kSide, kSide, 1}), 50));
  for (int i = 0; i < 8; ++i) {
    const Output filters = t->Weights(Shape({3, 3, i == 0 ? 1 : kChannels, kChannels}));
    const Output bias = t->Weights(Shape({kChannels}));
    const Output y = Call("Conv2D", {x, filters}, {{"strides", one}, {"padding", "SAME"}});
    x = Call("Relu", {Call("BiasAdd", {y, bias})});
  }
  constexpr int64_t kWidth = kSide * kSide * kChannels;
  t->Finish(Reshape(x, Constant(t->g, Tensor::Vector<int32_t>({kBatch, kWidth}))), kWidth);
}

void Lstm(Training* t) {
  constexpr int64_t kBatch = 128, kUnits = 128;
  const Output axis = Constant(t->g, Tensor::Scalar<int32_t>(1));
  const Output w = t->Weights(Shape({2 * kUnits, 4 * kUnits}));
  const Output bias = t->Weights(Shape({4 * kUnits}));
  Output c = t->Feed(Numbers(Shape({kBatch, kUnits}), 40)), h = c;
  for (uint32_t i = 0; i < 12; ++i) {
    const Output x = t->Feed(Numbers(Shape({kBatch, kUnits}), 50 + i));
    const Output joined = ConcatV2({x, h}, axis);
    const Output gates = Call("BiasAdd", {MatMul(joined, w), bias});
    const Outputs parts = CallN("Split", {axis, gates}, {{"num_split", int64_t{4}}});
    c = Call("Sigmoid", {parts[0]}) * c + Call("Sigmoid", {parts[1]}) * Tanh(parts[2]);
    h = Call("Sigmoid", {parts[3]}) * Tanh(c);
  }
  t->Finish(h, kUnits);
}

struct Trained {
  OneDevice::Ran step;
  std::vector<Tensor> variables;
};

StatusOr<Trained> Train(const Training& t, int64_t limit) {
  OneDevice device;
  RETURN_IF_ERROR(device.Run(t.g.graph(), t.init, 0).status());
  Trained trained;
  ASSIGN_OR_RETURN(trained.step, device.Run(t.g.graph(), t.step, limit));
  ASSIGN_OR_RETURN(OneDevice::Ran look, device.Run(t.g.graph(), t.look, 0));
  trained.variables = std::move(look.fetched);
  return trained;
}

void ExpectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0);
}

class TrainingStepsTest : public testing::TestWithParam<void (*)(Training*)> {};

TEST_P(TrainingStepsTest, FitIntoLess) {
  Training t;
  GetParam()(&t);
  const auto free = Train(t, 0);
  ASSERT_TRUE(free.ok()) << free.status();
  const auto measured = static_cast<double>(free->step.peak_bytes);
  const double predicted = free->step.predicted.devices.at(0).peak_own_bytes;
  std::printf("predicted %.0f, measured %.0f\n", predicted, measured);
  EXPECT_NEAR(predicted, measured, 0.1 * measured);

  for (const double part : {0.8, 0.6, 0.4}) {
    const auto limit = static_cast<int64_t>(part * measured);
    const auto limited = Train(t, limit);
    if (!limited.ok() && part < 0.6) {
      EXPECT_EQ(limited.status().code(), StatusCode::kResourceExhausted);
      continue;
    }
    ASSERT_TRUE(limited.ok()) << limited.status();
    std::printf("limit %lld, measured %lld\n%s", static_cast<long long>(limit),
                static_cast<long long>(limited->step.peak_bytes),
                ToString(limited->step.predicted).c_str());
    EXPECT_LE(limited->step.peak_bytes, limit);
    ExpectSame(limited->step.fetched[0], free->step.fetched[0]);
    for (size_t i = 0; i < free->variables.size(); ++i) {
      ExpectSame(limited->variables[i], free->variables[i]);
    }
  }
}

TEST_P(TrainingStepsTest, OrAreRefused) {
  Training t;
  GetParam()(&t);
  const auto refused = Train(t, 100'000);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("memory_limit: the step does not fit into 100000 bytes"));
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingStepsTest, testing::Values(&Convnet, &Lstm));

}  // namespace
}  // namespace penstock
