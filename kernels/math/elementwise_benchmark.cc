// SPDX-License-Identifier: Apache-2.0
//
// Measures elementwise kernels and reductions: nanoseconds per call, and elements per second.
#include "kernels/math/testing/kernel_loop.h"

namespace penstock {
namespace {

Tensor Filled(const Shape& shape) {
  Tensor t(DType::kFloat, shape);
  int i = 0;
  for (float& v : t.mutable_flat<float>()) v = 0.01f * static_cast<float>(i++ % 100 + 1);
  return t;
}

void Run(benchmark::State& state, const char* op, std::vector<Tensor> inputs, int64_t elements) {
  Attrs attrs;
  if (inputs.back().dtype() != DType::kFloat) attrs["T"] = DType::kFloat;
  KernelLoop(op, attrs, std::move(inputs), DType::kFloat, 1).Run(state);
  state.SetItemsProcessed(state.iterations() * elements);
}

void Unary(benchmark::State& state, const char* op) {
  Run(state, op, {Filled({state.range(0)})}, state.range(0));
}
BENCHMARK_CAPTURE(Unary, Neg, "Neg")->Arg(1)->Arg(4096)->Arg(1 << 20);
BENCHMARK_CAPTURE(Unary, Exp, "Exp")->Arg(4096);
BENCHMARK_CAPTURE(Unary, Log, "Log")->Arg(4096);
BENCHMARK_CAPTURE(Unary, Tanh, "Tanh")->Arg(4096);
BENCHMARK_CAPTURE(Unary, Sigmoid, "Sigmoid")->Arg(4096);
BENCHMARK_CAPTURE(Unary, Rsqrt, "Rsqrt")->Arg(4096);

void Binary(benchmark::State& state, const char* op, Shape a, Shape b) {
  const int64_t elements = std::max(a.num_elements(), b.num_elements());
  Run(state, op, {Filled(a), Filled(b)}, elements);
}
BENCHMARK_CAPTURE(Binary, AddScalars, "AddV2", Shape(), Shape());
BENCHMARK_CAPTURE(Binary, AddScalarRight, "AddV2", Shape{4096}, Shape());
BENCHMARK_CAPTURE(Binary, Add4K, "AddV2", Shape{4096}, Shape{4096});
BENCHMARK_CAPTURE(Binary, Add1M, "AddV2", Shape{1 << 20}, Shape{1 << 20});
BENCHMARK_CAPTURE(Binary, AddRow, "AddV2", Shape{128, 512}, Shape{512});
BENCHMARK_CAPTURE(Binary, AddShortRow, "AddV2", Shape{128, 10}, Shape{10});
BENCHMARK_CAPTURE(Binary, MulColumn, "Mul", Shape{128, 512}, Shape{128, 1});
BENCHMARK_CAPTURE(Binary, Maximum, "Maximum", Shape{4096}, Shape{4096});
BENCHMARK_CAPTURE(Binary, TanhGrad, "TanhGrad", Shape{4096}, Shape{4096});

void Reduce(benchmark::State& state, const char* op, Shape x, std::vector<int32_t> axes) {
  Run(state, op, {Filled(x), Tensor::Vector<int32_t>(axes)}, x.num_elements());
}
BENCHMARK_CAPTURE(Reduce, SumAll, "Sum", Shape{1 << 20}, {0});
BENCHMARK_CAPTURE(Reduce, SumRows, "Sum", Shape{128, 512}, {1});
BENCHMARK_CAPTURE(Reduce, SumColumns, "Sum", Shape{128, 512}, {0});
BENCHMARK_CAPTURE(Reduce, SumShortRows, "Sum", Shape{8192, 8}, {1});
BENCHMARK_CAPTURE(Reduce, MaxRows, "Max", Shape{128, 512}, {1});
BENCHMARK_CAPTURE(Reduce, MeanInner, "Mean", Shape{32, 28, 28, 64}, {0, 1, 2});

}  // namespace
}  // namespace penstock
