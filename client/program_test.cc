// SPDX-License-Identifier: Apache-2.0
//
// Variables of both fronts, initializers, and a program's collections.
#include "client/program.h"

#include <cmath>

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

TEST(ProgramTest, VariablesHaveUniqueNamesAndKnowTheirPlace) {
  Program program;
  const auto scope = program.NameScope("layer");
  const auto device = program.DeviceScope("/job:ps/task:1");
  Variable a(program, "w", {2}, Zeros());
  Variable b(program, "w", {2}, Zeros());
  EXPECT_EQ(a.name(), "layer/w");
  EXPECT_EQ(b.name(), "layer/w_1");
  EXPECT_EQ(a.device(), "/job:ps/task:1");
  // Everything that works on a variable asks for its device, whatever is around.
  const auto elsewhere = program.DeviceScope("/job:worker/task:0");
  EXPECT_EQ(program.NodeOf(a.Read())->requested_device(), "/job:ps/task:1");
  EXPECT_EQ(program.NodeOf(a.IsInitialized())->requested_device(), "/job:ps/task:1");
  EXPECT_EQ(program.NodeOf(a.Read() + 1.0)->requested_device(), "/job:worker/task:0");
}

TEST(ProgramTest, Collections) {
  Program program;
  Variable w(program, "w", {2}, Zeros());
  Variable fixed(program, "fixed", {2}, Zeros(), {.trainable = false});
  Variable mine(program, "mine", {2}, Zeros(), {.local = true});
  const Variable step = program.GlobalStep();
  const auto names = [](const std::vector<Variable>& variables) {
    std::string joined;
    for (const Variable& v : variables) joined += v.name() + " ";
    return joined;
  };
  EXPECT_EQ(names(program.globals()), "w fixed global_step ");
  EXPECT_EQ(names(program.trainable()), "w ");
  EXPECT_EQ(names(program.locals()), "mine ");
  EXPECT_EQ(step.dtype(), DType::kInt64);
  EXPECT_EQ(program.GlobalStep().handle(), step.handle()) << "made once";
}

TEST(ProgramTest, AGroupHasOneNodePerDevice) {
  Program program;
  Outputs ops;
  for (int i = 0; i < 6; ++i) {
    const auto device = program.DeviceScope(StrCat("/job:ps/task:", i % 2));
    ops.push_back(CallIn(program, "NoOp", {}, {}));
  }
  const Node* group = program.NodeOf(program.Group(ops, "all"));
  ASSERT_EQ(group->control_inputs().size(), 2u);
  for (const Node* part : group->control_inputs()) {
    EXPECT_EQ(part->control_inputs().size(), 3u);
    for (const Node* op : part->control_inputs()) {
      EXPECT_EQ(op->requested_device(), part->requested_device());
    }
  }
  // An empty one is legal.
  EXPECT_TRUE(program.NodeOf(program.Group({}, "nothing"))->control_inputs().empty());
}

struct Moments {
  double mean = 0, stddev = 0, low = 0, high = 0;
};
Moments MomentsOf(const Tensor& t) {
  Moments m{.low = 1e9, .high = -1e9};
  double squares = 0;
  for (const float v : t.flat<float>()) {
    m.mean += v;
    squares += v * v;
    m.low = std::min<double>(m.low, v);
    m.high = std::max<double>(m.high, v);
  }
  m.mean /= t.num_elements();
  m.stddev = std::sqrt(squares / t.num_elements() - m.mean * m.mean);
  return m;
}

TEST(InitializersTest, HaveTheMomentsThatTheyPromise) {
  const Shape shape = {3, 3, 20, 50};  // fan in 180, fan out 450
  const double glorot = std::sqrt(6.0 / 630), he = std::sqrt(2.0 / 180);
  struct {
    const char* name;
    Initializer initializer;
    Moments want;
  } const cases[] = {
      {"Zeros", Zeros(), {0, 0, 0, 0}},
      {"Ones", Ones(), {1, 0, 1, 1}},
      {"Filled", Filled(-2.5), {-2.5, 0, -2.5, -2.5}},
      {"RandomUniform", RandomUniform(1, 3, 7), {2, 2 / std::sqrt(12.0), 1, 3}},
      {"RandomNormal", RandomNormal(1, 2, 7), {1, 2, -1e9, 1e9}},
      {"TruncatedNormal", TruncatedNormal(1, 2, 7), {1, 2 * 0.8796, -3, 5}},
      {"GlorotUniform", GlorotUniform(7), {0, 2 * glorot / std::sqrt(12.0), -glorot, glorot}},
      {"HeNormal", HeNormal(7), {0, he, -2 * he / 0.8796, 2 * he / 0.8796}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Program program;
    Variable v(program, "v", shape, c.initializer);
    auto session = *Session::New(program);
    const Status status = session->Execute(v.initializer());
    ASSERT_TRUE(status.ok()) << status;
    const Moments m = MomentsOf(*session->Fetch(v));
    const double tolerance = 0.05 * std::max(1e-6, c.want.stddev);
    EXPECT_NEAR(m.mean, c.want.mean, tolerance);
    EXPECT_NEAR(m.stddev, c.want.stddev, tolerance);
    EXPECT_GE(m.low, c.want.low - 1e-6);
    EXPECT_LE(m.high, c.want.high + 1e-6);
  }
}

TEST(InitializersTest, ASeedRepeatsItselfAndNoSeedDoesNot) {
  for (const int64_t seed : {0, 42}) {
    Program program;
    Variable v(program, "v", {100}, RandomNormal(0, 1, seed));
    std::string values[2];
    for (std::string& value : values) {
      auto session = *Session::New(program);
      ASSERT_TRUE(session->Execute(v.initializer()).ok());
      value = session->Fetch(v)->ToString(100);
    }
    EXPECT_EQ(values[0] == values[1], seed != 0);
  }
}

}  // namespace
}  // namespace penstock::client
