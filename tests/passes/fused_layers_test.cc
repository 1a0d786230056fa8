// SPDX-License-Identifier: Apache-2.0
//
// Tests what the pass "fuse" makes of layers: biases and activations after MatMul and Conv2D, and
// gradients of activations. Trainings have the same bits with and without the pass.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/gradients.h"
#include "client/optimizers.h"
#include "client/program.h"
#include "client/session.h"
#include "client/variable.h"
#include "core/op/block_kernel.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using OpNames = std::vector<std::string>;

Tensor RandomFloats(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor(DType::kFloat, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.mutable_data<float>()[i] = static_cast<float>(random() % 2001) / 1000 - 1;
  }
  return tensor;
}

class FusedLayersTest : public testing::Test {
 protected:
  Output Fed(const PartialShape& shape) {
    return CallIn(program_, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", shape}});
  }
  Output Weights(const std::string& name, const Shape& shape, bool ref = false) {
    VariableOptions options;
    options.ref = ref;
    variables_.emplace_back(program_, name, Constant(program_, RandomFloats(shape, ++seed_)),
                            options);
    return variables_.back();
  }

  // Runs some steps, each of which runs `train`, if valid, and fetches `fetches`. Returns all
  // fetched tensors, and the variables at the end.
  std::vector<Tensor> Run(const std::vector<Feed>& feeds, const Outputs& fetches, Output train,
                          Output initializer, bool fuse) {
    SessionOptions options;
    if (!fuse) options.disabled_passes = {"fuse"};
    auto session = Session::New(program_, "", options);
    CHECK_OK(session.status());
    CHECK_OK((*session)->Execute(initializer));
    std::vector<TensorRef> targets;
    if (train.sink != nullptr) targets.push_back(train);
    std::vector<Tensor> results;
    for (int step = 0; step < 3; ++step) {
      RunMetadata metadata;
      const auto outputs =
          (*session)->Run(feeds, {fetches.begin(), fetches.end()}, targets,
                          {.partition_graphs = true}, &metadata);
      EXPECT_TRUE(outputs.ok()) << outputs.status();
      if (!outputs.ok()) return {};
      results.insert(results.end(), outputs->begin(), outputs->end());
      if (fuse) FindFused(metadata);
    }
    for (const Variable& v : variables_) {
      const auto value = (*session)->Fetch(v);
      CHECK_OK(value.status());
      results.push_back(*value);
    }
    return results;
  }

  // Expects the same bits with and without the pass.
  void Compare(const std::vector<Feed>& feeds, const Outputs& fetches, Output train = {}) {
    const Output initializer = program_.Initialize(program_.globals());
    const std::vector<Tensor> with = Run(feeds, fetches, train, initializer, true);
    const std::vector<Tensor> without = Run(feeds, fetches, train, initializer, false);
    ASSERT_EQ(with.size(), without.size());
    for (size_t i = 0; i < with.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_EQ(with[i].shape(), without[i].shape());
      EXPECT_EQ(std::memcmp(with[i].raw_data(), without[i].raw_data(), with[i].bytes()), 0);
    }
  }

  // Returns whether the last step of Compare had a _Fused node of these ops.
  bool Fused(const OpNames& ops) const {
    return std::find(fused_.begin(), fused_.end(), ops) != fused_.end();
  }
  std::string AllFused() const {
    std::string all;
    for (const OpNames& ops : fused_) {
      all += "[";
      for (const std::string& op : ops) all += " " + op;
      all += " ]";
    }
    return all;
  }

  Program program_;

 private:
  void FindFused(const RunMetadata& metadata) {
    fused_.clear();
    for (const auto& [device, graph] : metadata.partition_graphs) {
      for (const Node* node : graph.nodes()) {
        if (node->op_name() != kFusedOp) continue;
        OpNames ops;
        for (const FunctionName& function : *node->attr<std::vector<FunctionName>>("nodes")) {
          ops.push_back(function.name);
        }
        fused_.push_back(std::move(ops));
      }
    }
  }

  std::vector<Variable> variables_;
  std::vector<OpNames> fused_;
  uint32_t seed_ = 0;
};

// The batch is not known when the graph is built, as in most programs.
TEST_F(FusedLayersTest, DenseLayersTrain) {
  const Output x = Fed(PartialShape({-1, 37})), wanted = Fed(PartialShape({-1, 5}));
  const Output a =
      Call("Relu", {Call("BiasAdd", {MatMul(x, Weights("w1", {37, 24})), Weights("b1", {24})})});
  const Output b = Tanh(MatMul(a, Weights("w2", {24, 20})) + Weights("b2", {20}, /*ref=*/true));
  const Output c =
      Sigmoid(Call("BiasAddV1", {MatMul(b, Weights("w3", {20, 5})), Weights("b3", {5})}));
  const Output loss = Sum(Square(c - wanted), Constant(program_, Tensor::Vector<int32_t>({0, 1})));
  const Output train = GradientDescent(0.1).Minimize(program_, loss);
  Compare({{x, RandomFloats(Shape({9, 37}), 100)}, {wanted, RandomFloats(Shape({9, 5}), 101)}},
          {loss, c}, train);
  EXPECT_TRUE(Fused({"BiasAdd", "Relu"})) << AllFused();
  EXPECT_TRUE(Fused({"AddV2", "Tanh"})) << AllFused();
  EXPECT_TRUE(Fused({"BiasAddV1", "Sigmoid"})) << AllFused();
}

TEST_F(FusedLayersTest, ConvolutionsOfBothFormats) {
  const Output x = Fed(PartialShape({-1, 8, 8, 3}));
  const Output conv = Call("Conv2D", {x, Weights("w", {3, 3, 3, 6})},
                           {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}});
  const Output last = Call("Relu6", {Call("BiasAdd", {conv, Weights("b", {6})})});
  const Output first = Call("Transpose", {conv, Constant(program_, Tensor::Vector<int32_t>(
                                                                       {0, 3, 1, 2}))});
  const Output biased =
      Call("BiasAdd", {first, Weights("b1", {6})}, {{"data_format", std::string("NCHW")}});
  Compare({{x, RandomFloats(Shape({2, 8, 8, 3}), 100)}}, {last, Call("Elu", {biased})});
  EXPECT_TRUE(Fused({"BiasAdd", "Relu6"})) << AllFused();
  EXPECT_FALSE(Fused({"BiasAdd", "Elu"})) << "channels that come first do not broadcast by rows";
}

// The activations that the gradients read exist anyway, so a chain of gradients needs no more
// memory than its nodes.
TEST_F(FusedLayersTest, GradientsOfActivations) {
  const Output x = Fed(PartialShape({-1, 33})), dy = Fed(PartialShape({-1, 33}));
  const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
  const Output start = Call("Cumsum", {x, zero});
  const Output y = Tanh(Sigmoid(Call("Relu", {start})));
  // Behind an op that is not elementwise, as the gradients of a layer are.
  const Gradient gradient = Gradients(program_, {y}, {start}, {Call("Cumsum", {dy, zero})})[0];
  Compare({{x, RandomFloats(Shape({7, 33}), 100)}, {dy, RandomFloats(Shape({7, 33}), 101)}},
          {Call("Cumsum", {gradient.values, zero}), y});
  EXPECT_TRUE(Fused({"TanhGrad", "SigmoidGrad", "ReluGrad"})) << AllFused();
}

TEST_F(FusedLayersTest, LstmCellTrains) {
  const Output x = Fed(PartialShape({-1, 10})), h = Fed(PartialShape({-1, 8}));
  const Output c = Fed(PartialShape({-1, 8}));
  const auto gate = [&](const std::string& name) {
    const Output from_x = MatMul(x, Weights("w" + name, {10, 8}));
    const Output from_h = MatMul(h, Weights("u" + name, {8, 8}));
    return Call("BiasAdd", {from_x + from_h, Weights("b" + name, {8})});
  };
  const Output in = Sigmoid(gate("i")), forget = Sigmoid(gate("f")), out = Sigmoid(gate("o"));
  const Output next = forget * c + in * Tanh(gate("g"));
  const Output result = out * Tanh(next);
  const Output loss = Sum(result, Constant(program_, Tensor::Vector<int32_t>({0, 1})));
  const Output train = GradientDescent(0.5).Minimize(program_, loss);
  Compare({{x, RandomFloats(Shape({6, 10}), 100)},
           {h, RandomFloats(Shape({6, 8}), 101)},
           {c, RandomFloats(Shape({6, 8}), 102)}},
          {result, next}, train);
}

}  // namespace
}  // namespace penstock::client
