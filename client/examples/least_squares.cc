// SPDX-License-Identifier: Apache-2.0
//
// The program of the top README: fits a line by gradient descent.
#include <cstdio>

#include "client/ops/ops.h"
#include "client/optimizers.h"
#include "client/program.h"
#include "client/session.h"

using namespace penstock;          // NOLINT
using namespace penstock::client;  // NOLINT

int main() {
  Program program;
  const Output x = ops::Placeholder(program, DType::kFloat, {.shape = {-1, 2}});
  const Output y = ops::Placeholder(program, DType::kFloat, {.shape = {-1, 1}});
  const Variable w(program, "w", {2, 1}, GlorotUniform());
  const Output both_axes = Constant(program, Tensor::Vector<int32_t>({0, 1}));
  const Output loss = ops::Mean(ops::SquaredDifference(ops::MatMul(x, w), y), both_axes);
  const Output train = GradientDescent(0.5).Minimize(program, loss);

  auto session = Session::New(program, "");  // "" is this process; "grpc://host:2222" a cluster
  CHECK_OK(session.status());
  CHECK_OK((*session)->Execute(program.Initialize(program.globals())));
  const auto xs = Tensor::Of<float>({2, 2}, {1, 0, 0, 1}), ys = Tensor::Of<float>({2, 1}, {3, -1});
  for (int i = 0; i < 100; ++i) CHECK_OK((*session)->Execute(train, {{x, xs}, {y, ys}}));
  std::printf("w = %s\n", (*session)->Fetch(w)->ToString().c_str());  // about 3 and -1
}
