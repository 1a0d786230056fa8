// SPDX-License-Identifier: Apache-2.0
//
// Tests schedules against TensorFlow's values (computed in float32).
#include "client/optimizers/schedules.h"

#include "client/optimizers.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

// tf.compat.v1.train: exponential_decay(0.5, s, 30, 0.7), with staircase; cosine_decay(0.5, s, 100,
// 0.1); polynomial_decay(0.5, s, 100, 0.02, 2); piecewise_constant(s, [30, 60], [...]).
struct Row {
  int64_t step;
  std::vector<double> rates;
};
const std::vector<Row> kTensorFlow = {
    {0, {0.5, 0.5, 0.5, 0.5, 0.5}},
    {30, {0.34999999, 0.34999999, 0.40725169, 0.25520003, 0.5}},
    {31, {0.3458634, 0.34999999, 0.40146875, 0.24852799, 0.25}},
    {45, {0.292831, 0.34999999, 0.31019777, 0.1652, 0.25}},
    {60, {0.24499999, 0.24499999, 0.20547119, 0.096800014, 0.25}},
    {61, {0.24210438, 0.24499999, 0.19878395, 0.093007997, 0.125}},
    {99, {0.15409675, 0.1715, 0.050111029, 0.020048, 0.125}},
    {100, {0.15227552, 0.1715, 0.050000001, 0.02, 0.125}},
    {250, {0.02559294, 0.028824002, 0.050000001, 0.02, 0.125}},
};

TEST(SchedulesTest, AreTensorFlows) {
  Program program;
  const Outputs rates = {
      ExponentialDecay(program, {.initial = 0.5, .steps = 30, .rate = 0.7}),
      ExponentialDecay(program, {.initial = 0.5, .steps = 30, .rate = 0.7, .staircase = true}),
      CosineDecay(program, {.initial = 0.5, .steps = 100, .final = 0.1}),
      PolynomialDecay(program, {.initial = 0.5, .end = 0.02, .steps = 100, .power = 2}),
      PiecewiseConstant(program, {30, 60}, {0.5, 0.25, 0.125}),
  };
  const Variable step = program.GlobalStep();
  auto session = Session::New(program);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const Row& row : kTensorFlow) {
    SCOPED_TRACE(row.step);
    const Status assigned =
        (*session)->Execute(step.Assign(Constant(program, Tensor::Scalar(row.step))));
    ASSERT_TRUE(assigned.ok()) << assigned;
    for (size_t i = 0; i < rates.size(); ++i) {
      const auto rate = (*session)->Fetch(rates[i]);
      ASSERT_TRUE(rate.ok()) << rate.status();
      EXPECT_NEAR(rate->scalar<double>(), row.rates[i], 1e-6) << i;
    }
  }
}

TEST(SchedulesTest, AnOptimizerFollowsAWarmUp) {
  Program program;
  const Variable w(program, "w", {}, Zeros());
  GradientDescent optimizer(WarmUp(program, 4, 0.8));
  const Output train = optimizer.Minimize(program, Identity(w));
  auto session = Session::New(program);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Execute(program.Initialize(program.globals())).ok());
  double want = 0;
  for (const double rate : {0.2, 0.4, 0.6, 0.8, 0.8}) {
    const Status trained = (*session)->Execute(train);
    ASSERT_TRUE(trained.ok()) << trained;
    want -= rate;
    EXPECT_NEAR((*session)->Fetch(w)->scalar<float>(), want, 1e-6);
  }
}

TEST(SchedulesTest, BadOptionsAreTheProgramsError) {
  Program steps;
  WarmUp(steps, 0, 0.5);
  EXPECT_THAT(std::string(steps.status().message()), HasSubstr("warm_up: steps=0"));
  Program values;
  PiecewiseConstant(values, {30, 60}, {0.5});
  EXPECT_THAT(std::string(values.status().message()), HasSubstr("2 boundaries and 1 values"));
}

}  // namespace
}  // namespace penstock::client
