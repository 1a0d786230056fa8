// SPDX-License-Identifier: Apache-2.0
//
// Tests each method against its formula in a plain loop, with dense gradients, with sparse ones
// that repeat rows, and for ref and resource variables.
#include <cmath>
#include <functional>
#include <memory>

#include "client/optimizers/adam_variants.h"
#include "client/optimizers/adaptive.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using Values = std::vector<double>;

// A variable and its slots.
struct State {
  Values w, a, b, c;
};
// Updates `s` with the gradient `g` in update number `t` (from 1). `named[i]`: whether the gradient
// has row i.
using Formula =
    std::function<void(State& s, const Values& g, const std::vector<bool>& named, int t)>;

struct Case {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
  double a = 0, b = 0, c = 0;  // initial values
  Formula formula;
};

// Returns a Formula that applies `element` to the rows that the gradient has.
Formula Each(const std::function<void(double& w, double& a, double& b, double& c, double g, int t)>&
                 element) {
  return [element](State& s, const Values& g, const std::vector<bool>& named, int t) {
    for (size_t i = 0; i < s.w.size(); ++i) {
      if (named[i]) element(s.w[i], s.a[i], s.b[i], s.c[i], g[i], t);
    }
  };
}

void Moments(double& m, double& v, double g) {
  m = 0.9 * m + 0.1 * g;
  v = 0.999 * v + 0.001 * g * g;
}
void AdamStep(double& w, double& m, double& v, double g, int t, double epsilon) {
  Moments(m, v, g);
  const double rate = 0.05 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
  w -= rate * m / (std::sqrt(v) + epsilon);
}

double LengthOf(const Values& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

void LambStep(State& s, const Values& g, const std::vector<bool>&, int t) {
  Values u(s.w.size());
  for (size_t i = 0; i < u.size(); ++i) {
    Moments(s.a[i], s.b[i], g[i]);
    const double m = s.a[i] / (1 - std::pow(0.9, t)), v = s.b[i] / (1 - std::pow(0.999, t));
    u[i] = m / (std::sqrt(v) + 1e-6) + 0.1 * s.w[i];
  }
  const double own = LengthOf(s.w), length = LengthOf(u);
  const double ratio = own > 0 && length > 0 ? own / length : 1;
  for (size_t i = 0; i < u.size(); ++i) s.w[i] -= 0.05 * ratio * u[i];
}

std::vector<Case> Cases() {
  const auto ftrl = [](double& w, double& n, double& z, double&, double g, int) {
    const double next = n + g * g;
    z += g + 2 * 0.02 * w - (std::pow(next, 0.6) - std::pow(n, 0.6)) / 0.5 * w;
    n = next;
    const double sign = z < 0 ? -1 : 1;
    w = std::abs(z) > 0.3 ? (sign * 0.3 - z) / (std::pow(n, 0.6) / 0.5 + 2 * 0.1) : 0;
  };
  const auto adadelta = [](double& w, double& a, double& u, double&, double g, int) {
    a = 0.95 * a + 0.05 * g * g;
    const double d = std::sqrt(u + 1e-3) / std::sqrt(a + 1e-3) * g;
    u = 0.95 * u + 0.05 * d * d;
    w -= 0.7 * d;
  };
  const auto centered = [](double& w, double& mean, double& square, double& m, double g, int) {
    mean = 0.9 * mean + 0.1 * g;
    square = 0.9 * square + 0.1 * g * g;
    m = 0.5 * m + 0.05 * g / std::sqrt(square - mean * mean + 1e-10);
    w -= m;
  };
  const auto adamw = [](double& w, double& m, double& v, double&, double g, int t) {
    w -= 0.05 * 0.1 * w;
    AdamStep(w, m, v, g, t, 1e-7);
  };
  return {
      {"Ftrl",
       [] {
         return std::make_unique<Ftrl>(
             0.5,
             FtrlOptions{.learning_rate_power = -0.6, .l1 = 0.3, .l2 = 0.1, .l2_shrinkage = 0.02});
       },
       0.1, 0, 0, Each(ftrl)},
      {"Adadelta", [] { return std::make_unique<Adadelta>(0.7, AdadeltaOptions{.epsilon = 1e-3}); },
       0, 0, 0, Each(adadelta)},
      {"CenteredRmsProp",
       [] {
         return std::make_unique<CenteredRmsProp>(0.05, CenteredRmsPropOptions{.momentum = 0.5});
       },
       0, 1, 0, Each(centered)},
      {"LazyAdam", [] { return std::make_unique<LazyAdam>(0.05); }, 0, 0, 0,
       Each([](double& w, double& m, double& v, double&, double g, int t) {
         AdamStep(w, m, v, g, t, 1e-8);
       })},
      {"AdamW", [] { return std::make_unique<AdamW>(0.05, DecayOptions{.weight_decay = 0.1}); }, 0,
       0, 0, Each(adamw)},
      {"AdamWThatDecaysNothing",
       [] {
         return std::make_unique<AdamW>(
             0.05, DecayOptions{.weight_decay = 0.1,
                                .decays = [](const Variable& v) { return v.name() != "w"; }});
       },
       0, 0, 0, Each([](double& w, double& m, double& v, double&, double g, int t) {
         AdamStep(w, m, v, g, t, 1e-7);
       })},
      {"Lamb", [] { return std::make_unique<Lamb>(0.05, DecayOptions{.weight_decay = 0.1}); }, 0, 0,
       0, LambStep},
  };
}

struct Form {
  bool sparse, ref;
};
class MethodsTest : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Forms, MethodsTest,
                         testing::Values(Form{false, false}, Form{false, true}, Form{true, false},
                                         Form{true, true}),
                         [](const auto& info) {
                           return StrCat(info.param.sparse ? "Sparse" : "Dense",
                                         info.param.ref ? "Reference" : "Resource");
                         });

// The loss is sum(scale * w^2) / 2. In the sparse case a step gathers the rows 2, 0 and 2.
TEST_P(MethodsTest, FollowTheFormula) {
  constexpr int kRows = 4;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Program program;
    const Variable w(program, "w", {kRows, 1}, Filled(0.5),
                     {.dtype = DType::kDouble, .ref = GetParam().ref});
    Output rows = w;
    Values factors = {1, -2, 3, 0.5}, scales = factors;
    std::vector<bool> named(kRows, true);
    if (GetParam().sparse) {
      const Output indices = Constant(program, Tensor::Vector<int64_t>({2, 0, 2}));
      rows = Gather(w, indices, Constant(program, Tensor::Scalar<int32_t>(0)));
      factors = {1, 2, 4};
      scales = {2, 0, 5, 0};
      named = {true, false, true, false};
    }
    const auto count = static_cast<int64_t>(factors.size());
    const Output factor = Constant(program, Tensor::Of<double>({count, 1}, factors));
    const Output loss =
        Sum(Square(rows) * factor * 0.5, Constant(program, Tensor::Vector<int32_t>({0, 1})));
    const auto optimizer = c.make();
    const auto gradients = optimizer->ComputeGradients(program, loss);
    ASSERT_TRUE(program.status().ok()) << program.status();
    ASSERT_EQ(gradients[0].gradient.sparse(), GetParam().sparse);
    const Output train = optimizer->ApplyGradients(program, gradients);
    auto session = Session::New(program);
    ASSERT_TRUE(session.ok()) << session.status();
    const Status initialized = (*session)->Execute(program.Initialize(program.globals()));
    ASSERT_TRUE(initialized.ok()) << initialized;

    State state{Values(kRows, 0.5), Values(kRows, c.a), Values(kRows, c.b), Values(kRows, c.c)};
    for (int t = 1; t <= 12; ++t) {
      Values gradient(kRows);
      for (int i = 0; i < kRows; ++i) gradient[i] = scales[i] * state.w[i];
      c.formula(state, gradient, named, t);
      const Status status = (*session)->Execute(train);
      ASSERT_TRUE(status.ok()) << status;
    }
    const auto value = (*session)->Fetch(w);
    ASSERT_TRUE(value.ok()) << value.status();
    for (int i = 0; i < kRows; ++i) EXPECT_NEAR(value->flat<double>()[i], state.w[i], 1e-9) << i;
  }
}

TEST(LambTest, AVariableOfZerosMovesByTheRate) {
  Program program;
  const Variable w(program, "w", {2}, Zeros(), {.dtype = DType::kDouble});
  const Output loss = Sum(w * 3, Constant(program, Tensor::Scalar<int32_t>(0)));
  Lamb optimizer(0.05);
  const Output train = optimizer.Minimize(program, loss);
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(program.Initialize(program.globals())).ok());
  ASSERT_TRUE(session->Execute(train).ok());
  EXPECT_NEAR(session->Fetch(w)->flat<double>()[1], -0.05, 1e-6);
}

}  // namespace
}  // namespace penstock::client
