// SPDX-License-Identifier: Apache-2.0
//
// Tests that errors name the line of the program that made a node.
#include <array>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/embedding/dynamic_table.h"
#include "client/gradients.h"
#include "client/layers/layers.h"
#include "client/losses/losses.h"
#include "client/losses/sampled.h"
#include "client/metrics/metrics.h"
#include "client/ops/generate.h"
#include "client/ops/ops.h"
#include "client/optimizers.h"
#include "client/program.h"
#include "client/session.h"
#include "client/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Line(int line) { return StrCat(" (made at ", __FILE__, ":", line, ")"); }

TEST(SourceLine, OfANodeThatCannotBeAdded) {
  Program program;
  const Output x = ops::Placeholder(program, DType::kFloat, {.shape = {2, 3}});
  ops::MatMul(x, x);
  EXPECT_THAT(std::string(program.status().message()), EndsWith(Line(__LINE__ - 1)));
}

TEST(SourceLine, OfANodeThatFailsInAStep) {
  Program program;
  const Output x = ops::Placeholder(program, DType::kFloat);
  const Output table = ops::Reshape(x, {2, 3});
  const int line = __LINE__ - 1;
  const Output y = ops::Relu(table);
  auto session = *Session::New(program);
  const Feed five = {x, Tensor::Vector<float>({1, 2, 3, 4, 5})};
  EXPECT_THAT(std::string(session->Fetch(y, {five}).status().message()), EndsWith(Line(line)));
  const auto callable = session->MakeCallable({x}, {y});
  ASSERT_TRUE(callable.ok()) << callable.status();
  EXPECT_THAT(std::string((*callable)({five.value}).status().message()), EndsWith(Line(line)));
  auto step = session->StartPartialRun({x}, {y});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_THAT(std::string(step->Run({five}, {y}).status().message()), EndsWith(Line(line)));
  // An error without a node has no line.
  EXPECT_THAT(std::string(session->Fetch({"nowhere:0"}).status().message()),
              Not(HasSubstr("made at")));
}

class SourceLines : public testing::Test {
 protected:
  int LineOf(Output output) const { return program_.SourceLineOf(*program_.NodeOf(output)).line; }
  Output Input(Output output, int i) {
    return program_.OutputOf(program_.NodeOf(output)->input(i).node);
  }

  // Expects that all nodes that were added since the last call have the line of this file.
  void ExpectAllNewNodesAt(int line) {
    ASSERT_TRUE(program_.status().ok()) << program_.status();
    const int end = program_.graph().max_id();
    EXPECT_GT(end, seen_);
    for (; seen_ < end; ++seen_) {
      const Node* node = program_.graph().node(seen_);
      if (node == nullptr) continue;
      const SourceLine source = program_.SourceLineOf(*node);
      EXPECT_EQ(source.line, line) << node->name();
      EXPECT_STREQ(source.file, __FILE__) << node->name();
    }
  }

  Program program_;
  const Output x_ = ops::Placeholder(program_, DType::kFloat);
  int seen_ = program_.graph().max_id();
};

TEST_F(SourceLines, OfOpsWithOneTensorAndWithout) {
  const Output y = ops::Exp(x_);
  EXPECT_EQ(LineOf(y), __LINE__ - 1);
  const Output all =
      ops::Concat(ops::Const(program_, DType::kInt32, Tensor::Scalar<int32_t>(0)), {x_, x_});
  EXPECT_EQ(LineOf(all), __LINE__ - 1);
  EXPECT_EQ(LineOf(Input(all, 0)), __LINE__ - 2);
  const Variable v(program_, "v",
                   ops::Const(program_, DType::kFloat, Tensor::Vector<float>({1, 2})));
  const Output log = ops::Log(v);
  EXPECT_EQ(LineOf(log), __LINE__ - 1);
}

TEST_F(SourceLines, OfOpsWithLists) {
  const Variable v(program_, "v", {2}, Zeros());
  const Outputs two = {x_, x_};
  const std::array<Output, 2> array = {x_, x_};
  EXPECT_EQ(LineOf(ops::AddN({x_, x_})), __LINE__);
  EXPECT_EQ(LineOf(ops::AddN(two)), __LINE__);
  EXPECT_EQ(LineOf(ops::AddN({two})), __LINE__);
  EXPECT_EQ(LineOf(ops::AddN(Outputs(3, x_))), __LINE__);
  EXPECT_EQ(LineOf(ops::AddN(array)), __LINE__);
  EXPECT_EQ(LineOf(ops::AddN({v, x_})), __LINE__);
  EXPECT_EQ(LineOf(ops::AddN(std::vector<Variable>{v, v})), __LINE__);
  const Output joined = ops::ConcatV2({x_, x_}, 0);
  EXPECT_EQ(LineOf(joined), __LINE__ - 1);
  EXPECT_EQ(LineOf(Input(joined, 2)), __LINE__ - 2);
  EXPECT_EQ(LineOf(ops::Pack({x_, x_})), __LINE__);
  EXPECT_EQ(LineOf(ops::IdentityN({x_})[0]), __LINE__);
  const Output none = ops::Const(program_, DType::kString, Tensor::Vector<std::string>({}));
  EXPECT_EQ(LineOf(ops::MergeSummary({none, none})), __LINE__);
  seen_ = program_.graph().max_id();
  ops::ParseExample(none, none, {}, {}, {}, {}, {});
  ExpectAllNewNodesAt(__LINE__ - 1);
}

TEST(SourceLine, OfAListThatDoesNotFit) {
  Program program;
  const Output x = ops::Placeholder(program, DType::kFloat, {.shape = {2, 3}});
  const Output y = ops::Placeholder(program, DType::kFloat, {.shape = {4}});
  ops::AddN({x, y});
  EXPECT_THAT(std::string(program.status().message()), EndsWith(Line(__LINE__ - 1)));
}

// Every function of ops.h has an argument that records the line of the call.
TEST(SourceLine, OfEveryOp) {
  int ops = 0;
  for (const OpDef* op : Registry::Global().ops()) {
    if (op->internal()) continue;
    const std::string source = GenerateOps(Registry({*op}, {}), "ops.h").source;
    EXPECT_TRUE(absl::StrContains(source, ".Noted()") || absl::StrContains(source, "AsInputs("))
        << source;
    EXPECT_FALSE(absl::StrContains(source, "const Outputs& ")) << source;
    ++ops;
  }
  EXPECT_GT(ops, 500);
}

TEST_F(SourceLines, OfOperators) {
  const Output y = 2.0 * x_ + 1 - -x_ / x_;
  const int line = __LINE__ - 1;
  for (const Output node : {y, Input(y, 0), Input(y, 1), Input(Input(y, 0), 0),
                            Input(Input(y, 0), 1), Input(Input(y, 1), 0)}) {
    EXPECT_EQ(LineOf(node), line) << node.name();
  }
}

TEST_F(SourceLines, OfGradientsAreThoseOfTheirOps) {
  const Output y = ops::Tanh(x_);
  const int line = __LINE__ - 1;
  const Output dy = Gradients(program_, {y}, {x_})[0].values;
  EXPECT_EQ(LineOf(dy), line);
  EXPECT_EQ(program_.NodeOf(dy)->op_name(), "TanhGrad");
}

TEST_F(SourceLines, OfVariablesAreThoseOfTheirConstructors) {
  const Variable w(program_, "w", {2, 2}, GlorotUniform());
  ExpectAllNewNodesAt(__LINE__ - 1);
  w.Read();
  w.IsInitialized();
  ExpectAllNewNodesAt(__LINE__ - 4);
  const Output ones = ops::OnesLike(x_);
  ExpectAllNewNodesAt(__LINE__ - 1);
  w.Assign(ones), w.AssignAdd(ones), w.AssignSub(ones);
  ExpectAllNewNodesAt(__LINE__ - 1);
  const PartitionedVariable parts(program_, "parts", {8, 2}, Zeros(), {.parts = 2});
  ExpectAllNewNodesAt(__LINE__ - 1);
  program_.GlobalStep();
  ExpectAllNewNodesAt(__LINE__ - 1);
  const TableInitializer zeros = TableInitializer::Constant(0);
  const DynamicTable table(program_, "table", 2, zeros, TableMethod::GradientDescent(1));
  ExpectAllNewNodesAt(__LINE__ - 1);
  EmbeddingLookup(table, ops::Const(program_, DType::kInt64, Tensor::Vector<int64_t>({1, 2})));
  ExpectAllNewNodesAt(__LINE__ - 1);
}

// A function that makes variables on behalf of its caller.
TEST_F(SourceLines, OfAScopeReplaceThoseOfVariables) {
  const auto scope = program_.SourceLineScope({__FILE__, 7});
  const Variable w(program_, "w", {2}, Zeros());
  w.AssignAdd(w);
  ExpectAllNewNodesAt(7);
}

TEST_F(SourceLines, OfLayersAreThoseOfTheirCallers) {
  const Output x = ops::Placeholder(program_, DType::kFloat, {.shape = {-1, 4, 4, 3}});
  ExpectAllNewNodesAt(__LINE__ - 1);
  const layers::Dense dense(program_, "dense", 3, 3, {.activation = "Relu"});
  ExpectAllNewNodesAt(__LINE__ - 1);
  dense(x);
  ExpectAllNewNodesAt(__LINE__ - 1);
  const layers::Conv conv(program_, "conv", 3, 3, 2);
  ExpectAllNewNodesAt(__LINE__ - 1);
  conv(x);
  ExpectAllNewNodesAt(__LINE__ - 1);
  const layers::BatchNorm batch_norm(program_, "batch_norm", 3);
  ExpectAllNewNodesAt(__LINE__ - 1);
  batch_norm.ForTraining(x), batch_norm(x);
  ExpectAllNewNodesAt(__LINE__ - 1);
  const layers::LayerNorm layer_norm(program_, "layer_norm", 3);
  ExpectAllNewNodesAt(__LINE__ - 1);
  layer_norm(x), layers::Dropout(x, 0.5);
  ExpectAllNewNodesAt(__LINE__ - 1);
  const layers::Embedding embedding(program_, "embedding", 8, 3, {.parts = 2});
  ExpectAllNewNodesAt(__LINE__ - 1);
  embedding(ops::Const(program_, DType::kInt64, Tensor::Vector<int64_t>({1, 7})));
  ExpectAllNewNodesAt(__LINE__ - 1);
}

TEST_F(SourceLines, OfLossesAreThoseOfTheirCallers) {
  const Output y = ops::Placeholder(program_, DType::kFloat, {.shape = {2, 3}});
  ExpectAllNewNodesAt(__LINE__ - 1);
  for (const auto loss : {SigmoidCrossEntropy, SoftmaxCrossEntropy, Hinge, SquaredError}) {
    loss(y, y, {.reduction = Reduction::kSum});
    ExpectAllNewNodesAt(__LINE__ - 1);
  }
  Huber(y, y);
  ExpectAllNewNodesAt(__LINE__ - 1);
  const ClassTable table = {Variable(program_, "w", {9, 3}, Zeros()),
                            Variable(program_, "b", {9}, Zeros())};
  seen_ = program_.graph().max_id();
  const Output labels = ops::Const(program_, DType::kInt64, Tensor::Of<int64_t>({2, 1}, {1, 2}));
  ExpectAllNewNodesAt(__LINE__ - 1);
  SampledSoftmax(table, labels, y), NoiseContrastive(table, labels, y);
  ExpectAllNewNodesAt(__LINE__ - 1);
}

TEST_F(SourceLines, OfMetricsAreThoseOfTheirCallers) {
  MeanOf(program_, "mean", x_, x_);
  ExpectAllNewNodesAt(__LINE__ - 1);
  Accuracy(program_, "accuracy", x_, x_), Precision(program_, "precision", x_, x_);
  ExpectAllNewNodesAt(__LINE__ - 1);
  Recall(program_, "recall", x_, x_), Auc(program_, "auc", x_, x_), ExactAuc(x_, x_);
  ExpectAllNewNodesAt(__LINE__ - 1);
}

TEST_F(SourceLines, OfATrainOpAreThoseOfMinimizeAndOfTheOps) {
  const Variable w(program_, "w", {2}, Zeros());
  ExpectAllNewNodesAt(__LINE__ - 1);
  // The node has no line, so its gradient has the line of Minimize.
  const Output loss = Call("L2Loss", {w});
  seen_ = program_.graph().max_id();
  Adam(0.1).Minimize(program_, loss);
  ExpectAllNewNodesAt(__LINE__ - 1);
}

// A line belongs only to the nodes of its own call.
TEST_F(SourceLines, AreNotTakenFromAnotherNode) {
  const Output y = ops::Mul(ops::Add(x_, 1), 2);
  const int line = __LINE__ - 1;
  const Output z = Call("Neg", {y});
  EXPECT_EQ(LineOf(y), line);
  EXPECT_EQ(LineOf(Input(y, 0)), line);  // the sum
  EXPECT_EQ(LineOf(z), 0);
}

}  // namespace
}  // namespace penstock::client
