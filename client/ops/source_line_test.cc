// SPDX-License-Identifier: Apache-2.0
//
// Tests that errors name the line of the program that made a node.
#include <string>

#include "client/ops/ops.h"
#include "client/program.h"
#include "client/session.h"
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

// A line belongs only to the nodes of its own call: nodes that are made without an Operand have
// none.
TEST(SourceLine, IsNotTakenFromAnotherNode) {
  Program program;
  const Output x = ops::Placeholder(program, DType::kFloat);
  const Output y = ops::Mul(ops::Add(x, 1), 2);
  const int line = __LINE__ - 1;
  const Output z = Call("Neg", {y});
  const auto of = [&](Output output) { return program.SourceLineOf(*program.NodeOf(output)).line; };
  EXPECT_EQ(of(y), line);
  EXPECT_EQ(of({&program, program.NodeOf(y)->input(0).node->id(), 0}), line);  // the sum
  EXPECT_EQ(of(z), 0);
  EXPECT_EQ(of(x), 0);
}

}  // namespace
}  // namespace penstock::client
