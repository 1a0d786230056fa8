// SPDX-License-Identifier: Apache-2.0
//
// Tests that towers on fractions of a batch compute the same step as one big batch.
#include "client/replicate.h"

#include <cmath>

#include "client/optimizers.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int kTowers = 4, kTowerRows = 8;

// Returns the rows [begin, begin + rows) of the big batch; the numbers are arbitrary.
Tensor Batch(int begin, int rows) {
  std::vector<double> values;
  for (int i = begin; i < begin + rows; ++i) {
    for (int j = 0; j < 3; ++j) values.push_back(std::sin(1.7 * i + 0.9 * j));
  }
  return Tensor::Of<double>({rows, 3}, values);
}

struct Net {
  explicit Net(Program& program)
      : w1(program, "w1", {3, 5}, GlorotUniform(1), {.dtype = DType::kDouble}),
        w2(program, "w2", {5, 1}, GlorotUniform(2), {.dtype = DType::kDouble}),
        table(program, "table", {4, 1}, RandomUniform(-1, 1, 3), {.dtype = DType::kDouble}) {}
  // Uses dense and gathered parameters, so that both kinds of gradients are averaged.
  Output Loss(Output x, Output rows) const {
    const Output bias = Call("ResourceGather", {table.handle(), rows}, {{"dtype", DType::kDouble}});
    const Output y = MatMul(Tanh(MatMul(x, w1)), w2) + bias;
    return Mean(Square(y - 1), Constant(*x.sink, Tensor::Vector<int32_t>({0, 1})));
  }
  Variable w1, w2, table;
};

Output Rows(Program& program, int begin, int count) {
  std::vector<int32_t> rows;
  for (int i = begin; i < begin + count; ++i) rows.push_back(i * i % 4);
  return Constant(program, Tensor::Vector<int32_t>(rows));
}

struct Result {
  Tensor w1, w2, table;
  std::vector<double> losses;
};

Result Train(bool towers) {
  Program program;
  const Net net(program);
  Momentum optimizer(0.1, 0.9);
  Output loss, train;
  if (towers) {
    const std::vector<std::string> devices(kTowers, "/device:CPU:0");
    const Towers built = BuildTowers(program, optimizer, devices, [&](int i) {
      return net.Loss(Constant(program, Batch(i * kTowerRows, kTowerRows)),
                      Rows(program, i * kTowerRows, kTowerRows));
    });
    loss = built.loss;
    train = optimizer.ApplyGradients(program, built.gradients, program.GlobalStep());
  } else {
    loss = net.Loss(Constant(program, Batch(0, kTowers * kTowerRows)),
                    Rows(program, 0, kTowers * kTowerRows));
    train = optimizer.Minimize(program, loss);
  }
  auto session = *Session::New(program);
  CHECK_OK(session->Execute(program.Initialize(program.globals())));
  Result result;
  for (int step = 0; step < 10; ++step) {
    const auto outputs = session->Run({}, {loss}, {train});
    CHECK_OK(outputs.status());
    result.losses.push_back((*outputs)[0].scalar<double>());
  }
  const auto values = session->Run({net.w1, net.w2, net.table, program.GlobalStep()});
  CHECK_OK(values.status());
  EXPECT_EQ((*values)[3].scalar<int64_t>(), 10);
  result.w1 = (*values)[0];
  result.w2 = (*values)[1];
  result.table = (*values)[2];
  return result;
}

void ExpectClose(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    EXPECT_NEAR(a.flat<double>()[i], b.flat<double>()[i], 1e-13) << i;
  }
}

TEST(BuildTowersTest, TowersOnPartsAreOneBigBatch) {
  const Result big = Train(false), towers = Train(true);
  for (int step = 0; step < 10; ++step) {
    EXPECT_NEAR(towers.losses[step], big.losses[step], 1e-13) << step;
  }
  EXPECT_LT(big.losses[9], 0.5 * big.losses[0]) << "or nothing was compared";
  ExpectClose(towers.w1, big.w1);
  ExpectClose(towers.w2, big.w2);
  ExpectClose(towers.table, big.table);
}

TEST(BuildTowersTest, NoDevicesIsAMistake) {
  Program program;
  const Net net(program);
  GradientDescent optimizer(0.1);
  BuildTowers(program, optimizer, {}, [](int) { return Output(); });
  EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::client
