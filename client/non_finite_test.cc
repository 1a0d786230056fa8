// SPDX-License-Identifier: Apache-2.0
//
// Tests which node is named as the origin of a value that is not finite.
#include "client/non_finite.h"

#include <limits>
#include <string>
#include <vector>

#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(NonFiniteIn, NamesTheFirstOfEachType) {
  EXPECT_EQ(NonFiniteIn(Tensor::Vector<float>({1, -kInf, kNan})), "-Inf");
  EXPECT_EQ(NonFiniteIn(Tensor::Vector<double>({1, kNan, kInf})), "NaN");
  EXPECT_EQ(NonFiniteIn(Tensor::Vector<half>({half(1.f), half(kInf)})), "Inf");
  EXPECT_EQ(NonFiniteIn(Tensor::Vector<bfloat16>({bfloat16(kNan)})), "NaN");
  EXPECT_EQ(NonFiniteIn(Tensor::Vector<float>({1, 2})), "");
  EXPECT_EQ(NonFiniteIn(Tensor::Vector<int32_t>({1})), "");
  // Finite as a double, but not as a float.
  EXPECT_EQ(NonFiniteIn(Tensor::Scalar<double>(1e300)), "");
}

class NonFiniteOriginTest : public testing::Test {
 protected:
  NonFiniteOriginTest() {
    x_ = CallIn(program_, "Placeholder", {},
                {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}}, "x");
  }
  std::string Describe(Output loss, const std::vector<float>& x) {
    const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>(x)}};
    const Output init = program_.Initialize(program_.variables());
    const auto session = *Session::New(program_);
    CHECK_OK(session->Execute(init));
    return NonFiniteOrigin(program_, loss, feeds, *session, nullptr, "", 10'000, Env::Real())
        .Describe();
  }

  Program program_;
  Output x_;
};

TEST_F(NonFiniteOriginTest, AFedValue) {
  EXPECT_EQ(Describe(Square(x_), {1, kNan}), "the batch that was fed to 'x:0' has NaN");
}

TEST_F(NonFiniteOriginTest, TheFirstNodeInTheOrderOfTheGraph) {
  const Output log = Log(x_);
  const Output loss = Square(log) + Exp(log);  // Square and Exp are not finite either
  EXPECT_EQ(Describe(loss, {1, -1}), "the first node with NaN is 'Log' (Log)");
}

TEST_F(NonFiniteOriginTest, NodesThatTheLossDoesNotNeedAreLeftOut) {
  (void)Log(-Square(x_));
  EXPECT_THAT(Describe(Square(x_), {1, 2}), HasSubstr("the step has no such value"));
}

TEST_F(NonFiniteOriginTest, AVariableWithoutACheckpoint) {
  const Variable w(program_, "w", Constant(program_, Tensor::Vector<float>({1, kInf})));
  EXPECT_EQ(Describe(x_ * w, {1, 2}),
            "variable 'w' has Inf now: this step's update, or one before it, has put it there");
}

TEST_F(NonFiniteOriginTest, AStepThatCannotBeRunAgain) {
  const Output other = CallIn(program_, "Placeholder", {}, {{"dtype", DType::kFloat}}, "other");
  EXPECT_THAT(Describe(x_ + other, {1, 2}),
              AllOf(HasSubstr("the step cannot be run again"), HasSubstr("other")));
}

}  // namespace
}  // namespace penstock::client
