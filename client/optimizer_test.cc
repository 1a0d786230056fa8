// SPDX-License-Identifier: Apache-2.0
#include "client/optimizer.h"

#include "client/optimizers.h"
#include "client/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

TEST(OptimizerTest, SlotsStandBesideTheirVariablesUnderTensorFlowsNames) {
  Program program;
  {
    const auto device = program.DeviceScope("/job:ps/task:1");
    Variable(program, "layer/w", {3}, Zeros());
  }
  const Output loss =
      Sum(Square(program.variables()[0]), Constant(program, Tensor::Vector<int32_t>({0})));
  Adam optimizer(0.1);
  optimizer.Minimize(program, loss);
  ASSERT_TRUE(program.status().ok()) << program.status();
  std::vector<std::string> names;
  for (const Variable& slot : optimizer.slots()) {
    names.push_back(slot.name());
    EXPECT_EQ(slot.device(), "/job:ps/task:1") << slot.name();
    EXPECT_FALSE(slot.trainable());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"beta1_power", "beta2_power", "layer/w/Adam",
                                             "layer/w/Adam_1"}));
}

TEST(OptimizerTest, ALossThatDependsOnNoVariableIsAMistake) {
  Program program;
  Variable w(program, "w", {3}, Zeros());
  const Output loss = Constant(program, Tensor::Scalar(1.0f)) * 2;
  GradientDescent(0.1).Minimize(program, loss);
  EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(program.status().message().find("depends on none of the variables to train: w"),
            std::string::npos)
      << program.status();
}

TEST(OptimizerTest, TheLearningRateMayBeATensor) {
  Program program;
  Variable w(program, "w", {}, Filled(1));
  Variable rate(program, "rate", {}, Filled(0.25), {.trainable = false});
  const Output train = GradientDescent(Output(rate)).Minimize(program, w * 1.0);
  const Output halve = rate.Assign(rate * 0.5);
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(program.Initialize(program.globals())).ok());
  ASSERT_TRUE(session->Execute(train).ok());
  EXPECT_FLOAT_EQ(session->Fetch(w)->scalar<float>(), 0.75f);
  ASSERT_TRUE(session->Execute(halve).ok());
  ASSERT_TRUE(session->Execute(train).ok());
  EXPECT_FLOAT_EQ(session->Fetch(w)->scalar<float>(), 0.625f);
}

TEST(OptimizerTest, MinimizeRaisesTheGlobalStepAfterTheUpdate) {
  Program program;
  const Variable w(program, "w", {}, Filled(1));
  const Output train = GradientDescent(0.5).Minimize(program, w * 1.0);
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(program.Initialize(program.globals())).ok());
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(session->Execute(train).ok());
    EXPECT_EQ(session->Fetch(program.GlobalStep())->scalar<int64_t>(), step);
  }
}

TEST(OptimizerTest, OnlyTheVariablesThatAreNamedAreTrained) {
  Program program;
  const Variable a(program, "a", {}, Filled(1)), b(program, "b", {}, Filled(1));
  GradientDescent optimizer(0.5);
  const auto gradients = optimizer.ComputeGradients(program, a * b, {b});
  ASSERT_EQ(gradients.size(), 1);
  EXPECT_EQ(gradients[0].variable.name(), "b");
  const Output train = optimizer.ApplyGradients(program, gradients);
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(program.Initialize(program.globals())).ok());
  ASSERT_TRUE(session->Execute(train).ok());
  EXPECT_EQ(session->Fetch(a)->scalar<float>(), 1);
  EXPECT_EQ(session->Fetch(b)->scalar<float>(), 0.5f);
}

TEST(OptimizerTest, AVariableOutsideOfTheLossIsLeftAlone) {
  Program program;
  const Variable used(program, "used", {}, Filled(1)), unused(program, "unused", {}, Filled(1));
  GradientDescent optimizer(0.5);
  const auto gradients = optimizer.ComputeGradients(program, used * 1.0);
  ASSERT_EQ(gradients.size(), 2);
  EXPECT_FALSE(gradients[0].gradient.none());
  EXPECT_TRUE(gradients[1].gradient.none());
  const Output train = optimizer.ApplyGradients(program, gradients);
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(program.Initialize(program.globals())).ok());
  ASSERT_TRUE(session->Execute(train).ok());
  EXPECT_EQ(session->Fetch(unused)->scalar<float>(), 1);
}

TEST(SumRepeatedRowsTest, EachIndexStandsOnce) {
  Program program;
  const Gradient summed = SumRepeatedRows(
      {Constant(program, Tensor::Of<float>({4, 2}, {1, 2, 10, 20, 100, 200, 1000, 2000})),
       Constant(program, Tensor::Vector<int32_t>({7, 3, 7, 5})),
       Constant(program, Tensor::Vector<int32_t>({9, 2}))});
  auto session = *Session::New(program);
  const auto values = session->Run({summed.indices, summed.values});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].ToString(), Tensor::Vector<int32_t>({7, 3, 5}).ToString());
  EXPECT_EQ((*values)[1].ToString(),
            Tensor::Of<float>({3, 2}, {101, 202, 10, 20, 1000, 2000}).ToString());
}

// The indices may come from any op whose OpDef::distinct says that the elements of its first output
// are distinct.
TEST(DistinctRowsTest, IndicesThatAreKnownToBeDistinctAreUsedAsTheyAre) {
  Program program;
  const Output ids = Constant(program, Tensor::Vector<int32_t>({7, 3, 7}));
  const Output values = Constant(program, Tensor::Of<float>({3, 1}, {1, 2, 3}));
  const Output shape = Constant(program, Tensor::Vector<int32_t>({9, 1}));
  const Output axis = Constant(program, Tensor::Vector<int64_t>({0}));
  const Output known[] = {Call("Unique", {ids}), Call("UniqueWithCounts", {ids}),
                          Call("UniqueV2", {ids, axis}), Call("UniqueWithCountsV2", {ids, axis})};
  for (const Output& indices : known) {
    EXPECT_EQ(DistinctRows(program, {values, indices, shape}).indices, indices) << indices.name();
  }
  const Output positions = CallN("Unique", {ids})[1];
  EXPECT_NE(DistinctRows(program, {values, positions, shape}).indices, positions);
}

}  // namespace
}  // namespace penstock::client
