// SPDX-License-Identifier: Apache-2.0
//
// Tests each layer against its formula in plain loops; and trains layers with variables.
#include "client/layers/layers.h"

#include <cmath>

#include "client/losses/losses.h"
#include "client/optimizers.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<float>;

class LayersTest : public testing::Test {
 protected:
  Output Floats(const Shape& shape, const Values& values) {
    return Constant(program, Tensor::Of<float>(shape, values));
  }
  void Start() {
    auto made = Session::New(program);
    ASSERT_TRUE(made.ok()) << made.status();
    session = *std::move(made);
    const Status ready = session->Execute(program.Initialize(program.globals()));
    ASSERT_TRUE(ready.ok()) << ready;
  }
  Tensor Fetch(Output output) {
    const auto tensor = session->Fetch(output);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? *tensor : Tensor::Scalar<float>(0);
  }
  void ExpectNear(const Tensor& tensor, const Values& want) {
    ASSERT_EQ(tensor.num_elements(), std::ssize(want));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(tensor.flat<float>()[i], want[i], 1e-5) << i;
  }

  Program program;
  std::unique_ptr<Session> session;
};

// Returns an initializer with the values 1, 2, 3, ... in row-major order.
Initializer Counting() {
  return [](GraphSink& sink, DType, const Shape& shape) {
    Values values;
    for (int i = 0; i < shape.num_elements(); ++i) values.push_back(static_cast<float>(i + 1));
    return Constant(sink, Tensor::Of<float>(shape, values));
  };
}

TEST_F(LayersTest, Dense) {
  const layers::Dense dense(program, "net/dense", 3, 2,
                            {.activation = "Relu", .kernel = Counting()});
  const Output y = dense(Floats({2, 3}, {1, 0, -1, 1, 2, 3}));
  const Output outer = dense(Floats({1, 2, 1, 3}, {1, 0, -1, 1, 2, 3}));
  Start();
  EXPECT_EQ(dense.kernel().name(), "net/dense/kernel");
  EXPECT_EQ(program.globals()[1].name(), "net/dense/bias");
  EXPECT_EQ(program.globals().size(), 2u) << "both calls use the same variables";
  ExpectNear(Fetch(y), {0, 0, 22, 28});
  const Tensor reshaped = Fetch(outer);
  EXPECT_EQ(reshaped.shape(), Shape({1, 2, 1, 2}));
  ExpectNear(reshaped, {0, 0, 22, 28});
}

TEST_F(LayersTest, Embedding) {
  const layers::Embedding embedding(program, "words", 5, 2, {.parts = 2});
  const Output ids = Constant(program, Tensor::Vector<int64_t>({4, 0}));
  const Output rows = embedding(ids), whole = embedding.table();
  const Output splits = Constant(program, Tensor::Vector<int64_t>({0, 2}));
  const Output sum = embedding(IdLists::FromRagged(ids, splits), {.combiner = Combiner::kSum});
  Start();
  EXPECT_EQ(embedding.table().name(), "words/embeddings");
  const Tensor table = Fetch(whole);
  const auto all = table.flat<float>();
  ExpectNear(Fetch(rows), {all[8], all[9], all[0], all[1]});
  ExpectNear(Fetch(sum), {all[8] + all[0], all[9] + all[1]});
}

TEST_F(LayersTest, DropoutKeepsTheMean) {
  const Output y = layers::Dropout(Floats({20000}, Values(20000, 3)), 0.3, 5);
  Start();
  const Tensor dropped = Fetch(y);
  double sum = 0;
  int zeros = 0;
  for (const float v : dropped.flat<float>()) {
    EXPECT_TRUE(v == 0 || std::abs(v - 3 / 0.7) < 1e-5) << v;
    sum += v;
    zeros += v == 0;
  }
  EXPECT_NEAR(zeros / 20000.0, 0.3, 0.02);
  EXPECT_NEAR(sum / 20000, 3, 0.1);
  layers::Dropout(y, 1);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("Dropout: rate=1"));
}

TEST_F(LayersTest, Conv) {
  const layers::Conv conv(program, "conv", 1, 1, 2,
                          {.stride = 2, .padding = "VALID", .kernel = Counting()});
  const Output y = conv(Floats({1, 2, 4, 1}, {1, 0, 2, 1, 0, 1, 0, -1}));
  Start();
  ExpectNear(Fetch(y), {1 + 4, 2 + 2 - 4});
}

TEST_F(LayersTest, BatchNorm) {
  const layers::BatchNorm norm(program, "norm", 2, {.momentum = 0.5, .epsilon = 0.5});
  const Output x = Floats({4, 2}, {1, 10, 2, 20, 3, 30, 6, 40});
  const auto training = norm.ForTraining(x);
  const Output update = program.Group(training.updates, "updates");
  const Output inference = norm(x);
  Start();
  const Values mean = {3, 25}, variance = {3.5F, 125};
  Values want;
  for (const float v : {1, 10, 2, 20, 3, 30, 6, 40}) {
    const size_t c = want.size() % 2;
    want.push_back((v - mean[c]) / std::sqrt(variance[c] + 0.5F));
  }
  ExpectNear(Fetch(training.y), want);
  ASSERT_TRUE(session->Execute(update).ok());
  // The moving variance takes the unbiased estimate: the batch's variance times n / (n - 1).
  const Values moved_mean = {1.5F, 12.5F},
               moved = {0.5F + 3.5F * 4 / 3 / 2, 0.5F + 125.0F * 4 / 3 / 2};
  want.clear();
  for (const float v : {1, 10, 2, 20, 3, 30, 6, 40}) {
    const size_t c = want.size() % 2;
    want.push_back((v - moved_mean[c]) / std::sqrt(moved[c] + 0.5F));
  }
  ExpectNear(Fetch(inference), want);
}

TEST_F(LayersTest, LayerNorm) {
  const layers::LayerNorm norm(program, "norm", 3, 0.5);
  const Output y = norm(Floats({2, 1, 3}, {1, 2, 6, -1, -1, -1}));
  Start();
  const float scale = 1 / std::sqrt(14.0F / 3 + 0.5F);
  ExpectNear(Fetch(y), {-2 * scale, -scale, 3 * scale, 0, 0, 0});
}

// Learns exclusive or, which needs the hidden layer, with both kinds of normalisation in between.
TEST_F(LayersTest, Learn) {
  const layers::Dense hidden(program, "hidden", 2, 16,
                             {.activation = "Tanh", .kernel = GlorotUniform(3)});
  const layers::BatchNorm batch_norm(program, "batch_norm", 16, {.momentum = 0.9});
  const layers::LayerNorm layer_norm(program, "layer_norm", 16);
  const layers::Dense last(program, "last", 16, 1, {.kernel = GlorotUniform(4)});
  const Output x = Floats({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}), labels = Floats({4, 1}, {0, 1, 1, 0});
  const auto normal = batch_norm.ForTraining(hidden(x));
  const Output logits = last(layer_norm(normal.y));
  Adam optimizer(0.05);
  Outputs steps = normal.updates;
  steps.push_back(optimizer.Minimize(program, SigmoidCrossEntropy(labels, logits)));
  const Output train = program.Group(steps, "train");
  const Output p = Sigmoid(last(layer_norm(batch_norm(hidden(x)))));
  Start();
  for (int i = 0; i < 150; ++i) {
    const Status trained = session->Execute(train);
    ASSERT_TRUE(trained.ok()) << trained;
  }
  const Tensor probabilities = Fetch(p);
  std::vector<bool> guessed;
  for (const float v : probabilities.flat<float>()) guessed.push_back(v > 0.5);
  EXPECT_THAT(guessed, ElementsAre(false, true, true, false)) << probabilities.ToString();
}

}  // namespace
}  // namespace penstock::client
