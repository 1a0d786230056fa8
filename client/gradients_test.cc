// SPDX-License-Identifier: Apache-2.0
#include "client/gradients.h"

#include <cmath>
#include <limits>

#include "client/program.h"
#include "client/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

TEST(GradientsTest, ClippingKeepsTheDirectionAndBoundsTheLength) {
  struct {
    double norm;
    std::vector<float> a, b;
  } const cases[] = {
      {10, {3, 0}, {0, 4}},     // the norm is 5: the gradients stay unchanged
      {2.5, {1.5, 0}, {0, 2}},  // the gradients are halved
  };
  for (const auto& c : cases) {
    Program program;
    Variable a(program, "a", {2}, Zeros()), b(program, "b", {2}, Zeros());
    const auto clipped = ClipByGlobalNorm({{Constant(program, Tensor::Vector<float>({3, 0})), a},
                                           {Constant(program, Tensor::Vector<float>({0, 4})), b}},
                                          c.norm);
    auto session = *Session::New(program);
    const auto values = session->Run({clipped.gradients[0].gradient.values,
                                      clipped.gradients[1].gradient.values, clipped.global_norm});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].ToString(), Tensor::Vector<float>(c.a).ToString());
    EXPECT_EQ((*values)[1].ToString(), Tensor::Vector<float>(c.b).ToString());
    EXPECT_FLOAT_EQ((*values)[2].scalar<float>(), 5);
  }
}

TEST(GradientsTest, ClippingDoesNotHideAnExplosion) {
  Program program;
  Variable a(program, "a", {2}, Zeros());
  const float infinity = std::numeric_limits<float>::infinity();
  const auto clipped =
      ClipByGlobalNorm({{Constant(program, Tensor::Vector<float>({1, infinity})), a}}, 1);
  auto session = *Session::New(program);
  const Tensor value = *session->Fetch(clipped.gradients[0].gradient.values);
  EXPECT_TRUE(std::isnan(value.flat<float>()[0]));
}

TEST(GradientsTest, SecondDerivatives) {
  Program program;
  const Output x = Constant(program, Tensor::Scalar(3.0));
  const Output first = Gradients(program, {x * x * x}, {x})[0].values;
  const Output second = Gradients(program, {first}, {x})[0].values;
  auto session = *Session::New(program);
  const auto values = session->Run({first, second});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_DOUBLE_EQ((*values)[0].scalar<double>(), 27);
  EXPECT_DOUBLE_EQ((*values)[1].scalar<double>(), 18);
}

TEST(GradientsTest, AMistakeIsTheProgramsError) {
  Program program;
  const Output x = Constant(program, Tensor::Scalar<int32_t>(3));
  const auto gradients = Gradients(program, {x}, {x, x});
  EXPECT_EQ(gradients.size(), 2u) << "one for each x all the same";
  EXPECT_TRUE(gradients[0].none());
  EXPECT_FALSE(program.status().ok());
}

TEST(GradientsTest, NothingIsClippedWhereThereAreNoGradients) {
  Program program;
  const Variable a(program, "a", {2}, Zeros());
  const int nodes = program.graph().max_id();
  const auto clipped = ClipByGlobalNorm({{Gradient(), a}}, 1);
  EXPECT_TRUE(clipped.gradients[0].gradient.none());
  EXPECT_FALSE(clipped.global_norm.valid());
  EXPECT_EQ(program.graph().max_id(), nodes);
}

}  // namespace
}  // namespace penstock::client
