// SPDX-License-Identifier: Apache-2.0
//
// Tests every optimizer against its formula in a plain loop, with dense and sparse gradients.
#include "client/optimizers.h"

#include <cmath>
#include <functional>
#include <memory>

#include "client/session.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using Values = std::vector<double>;

// One element of a variable, and its slots.
struct Element {
  double w = 0, a = 0, b = 0;
};
// Updates `e` with the gradient `g`; `t` is the number of the update, from 1.
using Formula = std::function<void(Element& e, double g, int t)>;

struct Case {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
  Element start;
  Formula formula;
};

std::vector<Case> Cases() {
  const auto adam = [](Element& e, double g, int t) {
    e.a = 0.9 * e.a + 0.1 * g;
    e.b = 0.999 * e.b + 0.001 * g * g;
    const double rate = 0.05 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    e.w -= rate * e.a / (std::sqrt(e.b) + 1e-8);
  };
  return {
      {"GradientDescent",
       [] { return std::make_unique<GradientDescent>(0.1); },
       {},
       [](Element& e, double g, int) { e.w -= 0.1 * g; }},
      {"Momentum",
       [] { return std::make_unique<Momentum>(0.05, 0.8); },
       {},
       [](Element& e, double g, int) {
         e.a = 0.8 * e.a + g;
         e.w -= 0.05 * e.a;
       }},
      {"Nesterov",
       [] { return std::make_unique<Momentum>(0.05, 0.8, true); },
       {},
       [](Element& e, double g, int) {
         e.a = 0.8 * e.a + g;
         e.w -= 0.05 * (g + 0.8 * e.a);
       }},
      {"Adagrad",
       [] { return std::make_unique<Adagrad>(0.5); },
       {.a = 0.1},
       [](Element& e, double g, int) {
         e.a += g * g;
         e.w -= 0.5 * g / std::sqrt(e.a);
       }},
      {"RmsProp",
       [] {
         return std::make_unique<RmsProp>(0.05, RmsPropOptions{.decay = 0.9, .momentum = 0.5});
       },
       {.a = 1},
       [](Element& e, double g, int) {
         e.a = 0.9 * e.a + 0.1 * g * g;
         e.b = 0.5 * e.b + 0.05 * g / std::sqrt(e.a + 1e-10);
         e.w -= e.b;
       }},
      {"Adam", [] { return std::make_unique<Adam>(0.05); }, {}, adam},
  };
}

// Four points of y = 1 + 2 x0 - 3 x1.
const Values kX = {1, 2, 0, -1, 3, 1, -2, 0.5};
const Values kY = {-3, 4, 4, -4.5};

// Returns the gradient of the mean squared error with respect to (w0, w1, bias).
Values LossGradient(const std::vector<Element>& e) {
  Values g(3);
  for (int i = 0; i < 4; ++i) {
    const double error = e[0].w * kX[2 * i] + e[1].w * kX[2 * i + 1] + e[2].w - kY[i];
    g[0] += 2 * error * kX[2 * i] / 4;
    g[1] += 2 * error * kX[2 * i + 1] / 4;
    g[2] += 2 * error / 4;
  }
  return g;
}

class OptimizersTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Fronts, OptimizersTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Reference" : "Resource"; });

TEST_P(OptimizersTest, LinearRegressionFollowsTheFormula) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Program program;
    const VariableOptions options{.dtype = DType::kDouble, .ref = GetParam()};
    Variable w(program, "w", {2, 1}, Zeros(), options);
    Variable bias(program, "bias", {}, Zeros(), options);
    const Output x = Constant(program, Tensor::Of<double>({4, 2}, kX));
    const Output y = Constant(program, Tensor::Of<double>({4, 1}, kY));
    const Output error = MatMul(x, w) + bias - y;
    const Output loss = Mean(Square(error), Constant(program, Tensor::Vector<int32_t>({0, 1})));
    const auto optimizer = c.make();
    const Output train = optimizer->Minimize(program, loss);
    const Output init = program.Initialize(program.globals());
    auto session = Session::New(program);
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Execute(init).ok()) << (*session)->Execute(init);

    const Tensor first_loss = *(*session)->Fetch(loss);
    std::vector<Element> elements(3, c.start);
    for (int t = 1; t <= 30; ++t) {
      const Values gradient = LossGradient(elements);
      for (int i = 0; i < 3; ++i) c.formula(elements[i], gradient[i], t);
      const Status status = (*session)->Execute(train);
      ASSERT_TRUE(status.ok()) << status;
    }
    const auto values = (*session)->Run({w, bias, program.GlobalStep(), loss});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_NEAR((*values)[0].flat<double>()[0], elements[0].w, 1e-9);
    EXPECT_NEAR((*values)[0].flat<double>()[1], elements[1].w, 1e-9);
    EXPECT_NEAR((*values)[1].scalar<double>(), elements[2].w, 1e-9);
    EXPECT_EQ((*values)[2].scalar<int64_t>(), 30);
    EXPECT_LT((*values)[3].scalar<double>(), 0.7 * first_loss.scalar<double>());
  }
}

// Gathers the rows 2, 0 and 2 of a table of 4 rows: row 2 counts twice, rows 1 and 3 never.
TEST_P(OptimizersTest, GatheredRowsFollowTheFormula) {
  if (GetParam()) GTEST_SKIP() << "gathering by reference has dense gradients";
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Program program;
    Variable table(program, "table", {4, 1}, Filled(0.5), {.dtype = DType::kDouble});
    const Output indices = Constant(program, Tensor::Vector<int64_t>({2, 0, 2}));
    const Output rows =
        Call("ResourceGather", {table.handle(), indices}, {{"dtype", DType::kDouble}});
    const Output scale = Constant(program, Tensor::Of<double>({3, 1}, {1, 2, 4}));
    const Output loss =
        Sum(Square(rows) * scale, Constant(program, Tensor::Vector<int32_t>({0, 1})));
    const auto optimizer = c.make();
    const auto gradients = optimizer->ComputeGradients(program, loss);
    ASSERT_TRUE(program.status().ok()) << program.status();
    ASSERT_TRUE(gradients[0].gradient.sparse());
    const Output train = optimizer->ApplyGradients(program, gradients);
    auto session = Session::New(program);
    ASSERT_TRUE(session.ok()) << session.status();
    const Status initialized = (*session)->Execute(program.Initialize(program.globals()));
    ASSERT_TRUE(initialized.ok()) << initialized;

    std::vector<Element> elements(4, c.start);
    for (Element& e : elements) e.w = 0.5;
    const Values scales = {2, 0, 1 + 4, 0};
    // Adam decays the slots of every row, and so also updates rows without a gradient; the other
    // methods leave them unchanged.
    const bool all_rows = c.name == "Adam";
    for (int t = 1; t <= 10; ++t) {
      for (int i = 0; i < 4; ++i) {
        const double gradient = 2 * scales[i] * elements[i].w;
        if (all_rows || scales[i] != 0) c.formula(elements[i], gradient, t);
      }
      const Status status = (*session)->Execute(train);
      ASSERT_TRUE(status.ok()) << status;
    }
    const auto value = (*session)->Fetch(table);
    ASSERT_TRUE(value.ok()) << value.status();
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(value->flat<double>()[i], elements[i].w, 1e-9) << i;
  }
}

}  // namespace
}  // namespace penstock::client
