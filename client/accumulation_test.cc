// SPDX-License-Identifier: Apache-2.0
#include "client/accumulation.h"

#include <cmath>
#include <thread>

#include "client/optimizers.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int kParts = 4, kRows = 8;

// A linear model that also looks up a row. Its weights, its data and all sums of products are small
// multiples of powers of two, so sums are exact in any order.
struct BatchModel {
  explicit BatchModel(Program& program)
      : w(program, "w", {3, 2}, Zeros()),
        table(program, "table", {4, 2}, Zeros()),
        x(CallIn(program, "Placeholder", {},
                 {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 3})}})),
        row(CallIn(program, "Placeholder", {},
                   {{"dtype", DType::kInt32}, {"shape", PartialShape({-1})}})) {
    const Output looked_up =
        Call("ResourceGather", {table.handle(), row}, {{"dtype", DType::kFloat}});
    const Output y = MatMul(x, w) + looked_up;
    loss = Mean(Square(y - 1), Constant(program, Tensor::Vector<int32_t>({0, 1})));
  }
  std::vector<Feed> Batch(int begin, int count) const {
    std::vector<float> xs;
    std::vector<int32_t> rows;
    for (int i = begin; i < begin + count; ++i) {
      for (int j = 0; j < 3; ++j) xs.push_back(static_cast<float>((7 * i + 3 * j) % 5 - 2));
      rows.push_back(i * i % 3);
    }
    return {{x, Tensor::Of<float>({count, 3}, xs)}, {row, Tensor::Vector(rows)}};
  }
  Variable w, table;
  Output x, row, loss;
};

Status Initialize(Session& session, Program& program) {
  return session.Execute(program.Initialize(program.variables()));
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

TEST(Accumulation, SeveralMiniBatchesMakeTheUpdateOfOneBigBatch) {
  Program big;
  const BatchModel whole(big);
  const Output train_whole = GradientDescent(0.25).Minimize(big, whole.loss);
  Program small;
  const BatchModel part(small);
  GradientDescent optimizer(0.25);
  const Accumulation sum =
      AccumulateGradients(small, optimizer.ComputeGradients(small, part.loss), kParts);
  const Output train = optimizer.ApplyGradients(small, sum.gradients, small.GlobalStep());
  auto big_session = *Session::New(big), session = *Session::New(small);
  ASSERT_TRUE(Initialize(*big_session, big).ok());
  ASSERT_TRUE(Initialize(*session, small).ok());
  for (int step = 0; step < 3; ++step) {
    const Status whole_step =
        big_session->Execute(train_whole, whole.Batch(step * kParts * kRows, kParts * kRows));
    ASSERT_TRUE(whole_step.ok()) << whole_step;
    for (int i = 0; i < kParts; ++i) {
      const Status added =
          session->Execute(sum.accumulate, part.Batch((step * kParts + i) * kRows, kRows));
      ASSERT_TRUE(added.ok()) << added;
    }
    const Status applied = session->Execute(train);
    ASSERT_TRUE(applied.ok()) << applied;
    EXPECT_TRUE(SameTensor(*session->Fetch(part.w), *big_session->Fetch(whole.w))) << step;
    EXPECT_TRUE(SameTensor(*session->Fetch(part.table), *big_session->Fetch(whole.table))) << step;
  }
  EXPECT_EQ(session->Fetch(small.GlobalStep())->scalar<int64_t>(), 3);
}

// Gradients are added in the order of arrival: ((g1 + g2) + g3) + g4.
TEST(Accumulation, AddsInOrder) {
  Program program;
  const Variable v(program, "v", {1000}, Zeros());
  const Output g = CallIn(program, "Placeholder", {},
                          {{"dtype", DType::kFloat}, {"shape", PartialShape({1000})}});
  const Accumulation sum = AccumulateGradients(program, {{g, v}}, kParts);
  auto session = *Session::New(program);
  std::vector<float> expected(1000, 0);
  for (int i = 0; i < kParts; ++i) {
    std::vector<float> values;
    for (int k = 0; k < 1000; ++k) {
      values.push_back(static_cast<float>(std::sin(1.3 * k + i) * std::pow(10, k % 7)));
      expected[k] = i == 0 ? values[k] : expected[k] + values[k];
    }
    ASSERT_TRUE(session->Execute(sum.accumulate, {{g, Tensor::Vector(values)}}).ok());
  }
  for (float& value : expected) value /= kParts;
  const auto mean = session->Fetch(sum.gradients[0].gradient.values);
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_TRUE(SameTensor(*mean, Tensor::Vector(expected)));
}

// Several steps run at once in one session. Each adds its gradients; one update waits for all of
// them.
TEST(Accumulation, ConcurrentSteps) {
  Program program;
  const Variable v(program, "v", {}, Zeros());
  const Output g =
      CallIn(program, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
  constexpr int kThreads = 8, kUpdates = 20;
  const Accumulation sum = AccumulateGradients(program, {{g, v}}, kThreads);
  const Output train =
      GradientDescent(1.0).ApplyGradients(program, sum.gradients, program.GlobalStep());
  auto session = *Session::New(program);
  ASSERT_TRUE(Initialize(*session, program).ok());
  for (int update = 0; update < kUpdates; ++update) {
    std::vector<std::thread> threads;
    threads.emplace_back([&] { CHECK_OK(session->Execute(train)); });
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        CHECK_OK(session->Execute(sum.accumulate, {{g, Tensor::Scalar(static_cast<float>(i))}}));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(session->Fetch(v)->scalar<float>(), -3.5f * kUpdates);  // (0 + ... + 7) / 8
  EXPECT_EQ(session->Fetch(program.GlobalStep())->scalar<int64_t>(), kUpdates);
}

}  // namespace
}  // namespace penstock::client
