// SPDX-License-Identifier: Apache-2.0
//
// Tests ref variables and resource variables (the test parameter).
#include "client/variable.h"

#include "client/program.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

class VariableTest : public testing::TestWithParam<bool> {
 protected:
  VariableOptions options{.ref = GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Fronts, VariableTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Reference" : "Resource"; });

TEST_P(VariableTest, HasNoValueBeforeItsInitializerHasRun) {
  Program program;
  Variable w(program, "w", {2}, Filled(1.5), options);
  Variable v(program, "v", {2}, Zeros(), options);
  const Output answers = program.AreInitialized(program.variables());
  auto session = *Session::New(program);
  const auto early = session->Fetch(w);
  EXPECT_EQ(early.status().code(), StatusCode::kFailedPrecondition) << early.status();
  EXPECT_NE(early.status().message().find("uninitialized value w"), std::string::npos)
      << early.status();
  ASSERT_TRUE(session->Execute(w.initializer()).ok());
  EXPECT_EQ(session->Fetch(answers)->ToString(), Tensor::Of<bool>({2}, {true, false}).ToString());
  EXPECT_EQ(session->Fetch(w)->ToString(), "float[2] 1.5 1.5");
}

TEST_P(VariableTest, Assignments) {
  Program program;
  Variable w(program, "w", Constant(program, Tensor::Vector<float>({1, 2})), options);
  EXPECT_EQ(w.shape(), PartialShape({2}));
  EXPECT_EQ(w.dtype(), DType::kFloat);
  const Output three = Constant(program, Tensor::Vector<float>({3, 3}));
  auto session = *Session::New(program);
  const std::vector<std::pair<Output, std::string>> steps = {
      {w.initializer(), "float[2] 1 2"},
      {w.AssignAdd(three), "float[2] 4 5"},
      {w.AssignSub(three), "float[2] 1 2"},
      {w.Assign(three), "float[2] 3 3"},
  };
  for (const auto& [op, value] : steps) {
    ASSERT_TRUE(session->Execute(op).ok());
    EXPECT_EQ(session->Fetch(w)->ToString(), value);
  }
}

TEST_P(VariableTest, KeepsItsShape) {
  Program program;
  Variable w(program, "w", {2}, Zeros(), options);
  const Output x =
      CallIn(program, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
  const Output assign = w.Assign(x);
  auto session = *Session::New(program);
  EXPECT_TRUE(session->Execute(assign, {{x, Tensor::Vector<float>({1, 2})}}).ok());
  const Status wrong = session->Execute(assign, {{x, Tensor::Vector<float>({1, 2, 3})}});
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument) << wrong;
}

TEST_P(VariableTest, IsReadWhereItIsUsed) {
  Program program;
  Variable w(program, "w", {}, Filled(1), options);
  const Output before = w.Read();
  const Output add = w.AssignAdd(Constant(program, Tensor::Scalar(1.0f)));
  const auto after = program.ControlDependencies({add});
  const Output then = w * 10.0;
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(w.initializer()).ok());
  EXPECT_EQ(session->Fetch(then)->scalar<float>(), 20);
  EXPECT_EQ(session->Fetch(before)->scalar<float>(), 2);
}

TEST(VariablesTest, HaveUniqueNamesAndKnowTheirPlace) {
  Program program;
  const auto scope = program.NameScope("layer");
  const auto device = program.DeviceScope("/job:ps/task:1");
  Variable a(program, "w", {2}, Zeros());
  Variable b(program, "w", {2}, Zeros());
  EXPECT_EQ(a.name(), "layer/w");
  EXPECT_EQ(b.name(), "layer/w_1");
  EXPECT_EQ(a.device(), "/job:ps/task:1");
  // Ops on a variable request the variable's device, also inside another device scope.
  const auto elsewhere = program.DeviceScope("/job:worker/task:0");
  EXPECT_EQ(program.NodeOf(a.Read())->requested_device(), "/job:ps/task:1");
  EXPECT_EQ(program.NodeOf(a.IsInitialized())->requested_device(), "/job:ps/task:1");
  EXPECT_EQ(program.NodeOf(a.Read() + 1.0)->requested_device(), "/job:worker/task:0");
}

}  // namespace
}  // namespace penstock::client
