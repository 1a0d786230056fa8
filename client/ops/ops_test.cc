// SPDX-License-Identifier: Apache-2.0
//
// Tests the generated functions as a program uses them.
#include "client/ops/ops.h"

#include <string>
#include <vector>

#include "core/gradients/gradients.h"
#include "core/graph/builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(Ops, ALayer) {
  GraphBuilder graph;
  const Output x = ops::Placeholder(graph, DType::kFloat, {.shape = {32, 784}, .name = "x"});
  const Output w = ops::VariableV2(graph, DType::kFloat, PartialShape({10, 784}), {.name = "w"});
  const Output b = ops::VariableV2(graph, DType::kFloat, PartialShape({10}));
  const Output y = ops::Relu(ops::BiasAdd(ops::MatMul(x, w, {.transpose_b = true}), b));
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  EXPECT_EQ(y.name(), "Relu:0");
  EXPECT_EQ(x.name(), "x:0");
  EXPECT_EQ(y.shape(), PartialShape({32, 10}));
  EXPECT_TRUE(graph.graph().Validate().ok());
}

TEST(Ops, AreDifferentiable) {
  GraphBuilder graph;
  const Output x = ops::Placeholder(graph, DType::kFloat, {.shape = {32, 784}});
  const Output labels = ops::Placeholder(graph, DType::kInt64, {.shape = {32}});
  const Output w = ops::VariableV2(graph, DType::kFloat, PartialShape({784, 10}));
  const Output table = ops::VarHandleOp(graph, DType::kFloat, PartialShape({50, 784}));
  const Output rows = ops::ResourceGather(table, labels, DType::kFloat);
  const Output logits = ops::Tanh(ops::MatMul(x + rows, w));
  const Output loss = ops::SparseSoftmaxCrossEntropyWithLogits(logits, labels).loss;
  const auto gradients = AddGradients(graph, {loss}, {w, table, x, labels});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ((*gradients)[0].values.shape(), PartialShape({784, 10}));
  EXPECT_TRUE((*gradients)[1].sparse());
  EXPECT_EQ(Dense((*gradients)[1]).dtype(), DType::kFloat);
  EXPECT_TRUE((*gradients)[2].values.shape().Compatible(PartialShape({32, 784})));
  EXPECT_TRUE((*gradients)[3].none());
  EXPECT_TRUE(graph.graph().Validate().ok()) << graph.graph().Validate();
}

TEST(Ops, ListsAndSeveralOutputs) {
  GraphBuilder graph;
  const Output x = ops::Placeholder(graph, DType::kFloat, {.shape = {4, 6}});
  const Output axis = ops::Const(graph, DType::kInt32, Tensor::Scalar<int32_t>(1));
  const Outputs thirds = ops::Split(axis, x, 3);
  ASSERT_EQ(thirds.size(), 3);
  EXPECT_EQ(thirds[2].name(), "Split:2");
  EXPECT_EQ(ops::ConcatV2(thirds, axis).shape(), PartialShape({4, 6}));
  const ops::TopKV2Outputs top = ops::TopKV2(
      x, ops::Const(graph, DType::kInt32, Tensor::Scalar<int32_t>(2)), {.sorted = false});
  EXPECT_EQ(top.indices.dtype(), DType::kInt32);
  EXPECT_EQ(top.values.shape(), PartialShape({4, 2}));
  const Output done = ops::NoOp(graph, {.name = "done"});
  EXPECT_EQ(graph.NodeOf(done)->name(), "done");
  EXPECT_TRUE(graph.status().ok()) << graph.status();
}

TEST(Ops, NumbersBecomeConstants) {
  GraphBuilder graph;
  const Output x = ops::Placeholder(graph, DType::kDouble, {.shape = {4, 6}});
  const Output counts = ops::Placeholder(graph, DType::kInt64, {.shape = {4, 6}});
  const auto constant = [&](Output output, int input) {
    const Node* const node = graph.NodeOf(output);
    return graph.OutputOf(node->input(input).node, node->input(input).index).constant()->ToString();
  };
  EXPECT_EQ(constant(ops::Greater(x, 1), 1), "double[] 1");
  EXPECT_EQ(constant(ops::Sub(1.5, x), 0), "double[] 1.5");
  EXPECT_EQ(constant(ops::Add(counts, 2.0), 1), "int64[] 2");
  EXPECT_EQ(constant(ops::Mean(x, {0, 1}), 1), "int32[2] 0 1");
  EXPECT_EQ(constant(ops::Reshape(x, {int64_t{-1}, int64_t{3}}), 1), "int32[2] -1 3");
  EXPECT_EQ(ops::Reshape(x, {-1, 3}).shape(), PartialShape({8, 3}));
  EXPECT_EQ(constant(ops::ClipByValue(x, -0.5, 1), 2), "double[] 1");
  EXPECT_EQ(constant(ops::ConcatV2({x, x}, 1), 2), "int32[] 1");
  EXPECT_EQ(constant(ops::LogicalOr(ops::Less(x, 0), false), 1), "bool[] false");
  EXPECT_EQ(constant(ops::Mean(x, Tensor::Scalar<int64_t>(1)), 1), "int64[] 1");
  EXPECT_TRUE(graph.status().ok()) << graph.status();
}

TEST(Ops, NumbersThatDoNotFitAreErrors) {
  const auto error = [](const auto& add) {
    GraphBuilder graph;
    const Output bytes = ops::Placeholder(graph, DType::kUint8);
    EXPECT_FALSE(add(bytes).valid());
    return std::string(graph.status().message());
  };
  EXPECT_THAT(error([](Output x) { return ops::Add(x, 0.5); }), HasSubstr("0.5 is no uint8"));
  EXPECT_THAT(error([](Output x) { return ops::Add(x, 256); }),
              HasSubstr("arguments of Add: 256 is no uint8"));
  EXPECT_THAT(error([](Output x) { return ops::Add(x, -1); }), HasSubstr("-1 is no uint8"));
  EXPECT_THAT(error([](Output x) { return ops::Add(x, "one"); }),
              HasSubstr("a string is no uint8"));
}

TEST(Ops, ErrorsStickAndResultsStayUsable) {
  GraphBuilder graph;
  const Output x = ops::Placeholder(graph, DType::kFloat, {.shape = {4, 6}});
  const Output axis = ops::Const(graph, DType::kFloat, Tensor::Scalar<float>(1));
  const Outputs thirds = ops::Split(axis, x, 3, {.name = "wrong"});
  ASSERT_EQ(thirds.size(), 3);
  EXPECT_FALSE(thirds[2].valid());
  EXPECT_FALSE(ops::Relu(thirds[0]).valid());
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("node 'wrong' (op Split)"));
}

}  // namespace
}  // namespace penstock
