// SPDX-License-Identifier: Apache-2.0
//
// Tests that errors name the line of the program that made a node.
#include <string>

#include "client/gradients.h"
#include "client/ops/ops.h"
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

  Program program_;
  const Output x_ = ops::Placeholder(program_, DType::kFloat);
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
