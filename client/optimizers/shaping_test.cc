// SPDX-License-Identifier: Apache-2.0
//
// Tests clipped gradients and penalties against their formulas.
#include "client/optimizers/shaping.h"

#include <cmath>
#include <functional>
#include <limits>

#include "client/optimizers.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;
using Values = std::vector<double>;
using Clip =
    std::function<std::vector<VariableGradient>(Program&, const std::vector<VariableGradient>&)>;

// Clipped gradients as dense tensors. Before clipping, the gradient of a vector is {3, -4}, and the
// gradient of a table has row 1 twice, each time with {1, 2}.
struct Clipped {
  Values vector, table;
};
Clipped ClippedBy(const Clip& clip, double factor = 1) {
  Program program;
  const Variable vector(program, "vector", {2}, Zeros(), {.dtype = DType::kDouble});
  const Variable table(program, "table", {3, 2}, Zeros(), {.dtype = DType::kDouble});
  const Variable other(program, "other", {}, Zeros(), {.dtype = DType::kDouble});
  const Output zero = Constant(program, Tensor::Scalar<int32_t>(0));
  const Output both = Constant(program, Tensor::Vector<int32_t>({0, 1}));
  const Output rows = Gather(table, Constant(program, Tensor::Vector<int64_t>({1, 1})), zero);
  const Output loss =
      Sum(vector * Constant(program, Tensor::Vector<double>({3 * factor, -4 * factor})), zero) +
      Sum(rows * Constant(program, Tensor::Vector<double>({1, 2})), both);
  GradientDescent optimizer(1);
  const auto clipped = clip(program, optimizer.ComputeGradients(program, loss));
  EXPECT_TRUE(clipped[2].gradient.none());
  const Output first = Dense(clipped[0].gradient), second = Dense(clipped[1].gradient);
  auto session = Session::New(program);
  EXPECT_TRUE(session.ok()) << session.status();
  const auto ready = (*session)->Execute(program.Initialize(program.globals()));
  EXPECT_TRUE(ready.ok()) << ready;
  const auto got = (*session)->Run({first, second});
  EXPECT_TRUE(got.ok()) << got.status();
  const auto a = (*got)[0].flat<double>(), b = (*got)[1].flat<double>();
  return {Values(a.begin(), a.end()), Values(b.begin(), b.end())};
}

void ExpectNear(const Values& values, const Values& want) {
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], 1e-12) << i;
}

TEST(ShapingTest, ClipByNorm) {
  const auto clip = [](double norm) {
    return ClippedBy([norm](Program& p, const auto& g) { return ClipByNorm(p, g, norm); });
  };
  const Clipped short_ones = clip(2.5);
  ExpectNear(short_ones.vector, {1.5, -2});
  const double scale = 2.5 / std::sqrt(20.0);  // the row's gradient is {2, 4}
  ExpectNear(short_ones.table, {0, 0, 2 * scale, 4 * scale, 0, 0});
  const Clipped unchanged = clip(5);
  ExpectNear(unchanged.vector, {3, -4});
  ExpectNear(unchanged.table, {0, 0, 2, 4, 0, 0});
}

TEST(ShapingTest, ClipByValue) {
  const Clipped clipped =
      ClippedBy([](Program& p, const auto& g) { return ClipByValue(p, g, 3.5); });
  ExpectNear(clipped.vector, {3, -3.5});
  ExpectNear(clipped.table, {0, 0, 2, 3.5, 0, 0});
}

TEST(ShapingTest, AGradientThatIsNotFiniteStaysSo) {
  const auto by_norm = [](Program& p, const auto& g) { return ClipByNorm(p, g, 1); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ClippedBy(by_norm, nan).vector[0]));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(ClippedBy(by_norm, infinity).vector[0]));
}

TEST(ShapingTest, BoundsMustBePositive) {
  Program program;
  ClipByNorm(program, {}, 0);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("clip_by_norm: 0"));
}

TEST(ShapingTest, Penalties) {
  Program program;
  const Output a = Constant(program, Tensor::Of<double>({2, 1}, {1, -2}));
  const Output b = Constant(program, Tensor::Scalar<double>(-0.5));
  const Output l1 = L1Penalty({a, b}, 0.1), l2 = L2Penalty({a, b}, 0.1);
  auto session = Session::New(program);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_NEAR((*session)->Fetch(l1)->scalar<double>(), 0.35, 1e-12);
  EXPECT_NEAR((*session)->Fetch(l2)->scalar<double>(), 0.2625, 1e-12);
}

}  // namespace
}  // namespace penstock::client
