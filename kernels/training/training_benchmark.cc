// SPDX-License-Identifier: Apache-2.0
//
// Measures updates of large variables: bytes per second of state and gradient, and rows per second.
#include <benchmark/benchmark.h>

#include <random>

#include "kernels/state/testing/test_variables.h"

namespace penstock {
namespace {

Tensor Filled(const Shape& shape, float value) {
  Tensor tensor(DType::kFloat, shape);
  std::fill_n(tensor.mutable_data<float>(), tensor.num_elements(), value);
  return tensor;
}

void Run(benchmark::State& state, OpRunner& op) {
  for (auto _ : state) {
    if (const Status status = op.Run().status(); !status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      return;
    }
  }
}

void BM_GradientDescent(benchmark::State& state) {
  const Shape shape({state.range(0)});
  TestVariables variables;
  OpRunner op = variables.Op("ResourceApplyGradientDescent");
  op.Attr("T", DType::kFloat)
      .In(variables.New(Filled(shape, 1)))
      .In(Tensor::Scalar(0.01f))
      .In(Filled(shape, 0.5));
  Run(state, op);
  state.SetBytesProcessed(state.iterations() * 3 * 4 * state.range(0));  // two reads, one write
}
BENCHMARK(BM_GradientDescent)->Arg(1 << 12)->Arg(1 << 16)->Arg(1 << 23)->UseRealTime();

void BM_Adam(benchmark::State& state) {
  const Shape shape({state.range(0)});
  TestVariables variables;
  OpRunner op = variables.Op("ResourceApplyAdam");
  op.Attr("T", DType::kFloat);
  for (int i = 0; i < 3; ++i) op.In(variables.New(Filled(shape, 1)));
  for (const float h : {0.9f, 0.999f, 0.001f, 0.9f, 0.999f, 1e-8f}) op.In(Tensor::Scalar(h));
  op.In(Filled(shape, 0.5));
  Run(state, op);
  state.SetBytesProcessed(state.iterations() * 7 * 4 * state.range(0));
}
BENCHMARK(BM_Adam)->Arg(1 << 12)->Arg(1 << 16)->Arg(1 << 23)->UseRealTime();

// Returns `count` random row numbers of a table of `table` rows.
Tensor RandomRows(int64_t table, int64_t count) {
  std::mt19937_64 random(1);
  Tensor rows(DType::kInt32, {count});
  for (int32_t& row : rows.mutable_flat<int32_t>()) row = static_cast<int32_t>(random() % table);
  return rows;
}

void BM_SparseAdagrad(benchmark::State& state) {
  const int64_t length = state.range(0), table = (256 << 20) / 4 / length, rows = 4096;
  TestVariables variables;
  OpRunner op = variables.Op("ResourceSparseApplyAdagrad");
  op.Attr("T", DType::kFloat)
      .In(variables.New(Filled({table, length}, 1)))
      .In(variables.New(Filled({table, length}, 1)))
      .In(Tensor::Scalar(0.01f))
      .In(Filled({rows, length}, 0.5))
      .In(RandomRows(table, rows));
  Run(state, op);
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(BM_SparseAdagrad)->Arg(16)->Arg(64)->UseRealTime();

void BM_ScatterAdd(benchmark::State& state) {
  const int64_t length = state.range(0), table = (256 << 20) / 4 / length, rows = 4096;
  TestVariables variables;
  OpRunner op = variables.Op("ResourceScatterAdd");
  op.Attr("dtype", DType::kFloat)
      .In(variables.New(Filled({table, length}, 1)))
      .In(RandomRows(table, rows))
      .In(Filled({rows, length}, 0.5));
  Run(state, op);
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(BM_ScatterAdd)->Arg(16)->Arg(64)->UseRealTime();

}  // namespace
}  // namespace penstock
