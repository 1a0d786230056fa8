// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of creating, destroying, copying and slicing tensors.
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/tensor/tensor.h"

namespace penstock {
namespace {

void BM_MakeTensor(benchmark::State& state) {
  const Shape shape = state.range(0) == 1 ? Shape() : Shape({state.range(0)});
  Allocator& allocator = CpuAllocator();
  for (auto _ : state) {
    StatusOr<Tensor> tensor = Tensor::Make(allocator, DType::kFloat, shape);
    benchmark::DoNotOptimize(tensor->raw_data());
  }
}
BENCHMARK(BM_MakeTensor)->Arg(1)->Arg(100)->Arg(1 << 10)->Arg(16 << 10)->Arg(256 << 10);
BENCHMARK(BM_MakeTensor)->Arg(1)->Arg(256 << 10)->Threads(2);

// Measures making a tensor and writing all its pages, as a kernel does with a fresh output.
void BM_MakeAndWriteTensor(benchmark::State& state) {
  for (auto _ : state) {
    Tensor tensor(DType::kFloat, Shape({state.range(0)}));
    memset(tensor.mutable_raw_data(), 1, tensor.bytes());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}
BENCHMARK(BM_MakeAndWriteTensor)->Arg(256 << 10)->Arg(16 << 20);

// Keeps more scalars alive at once than a thread's cache holds, as a large step does.
void BM_MakeManyScalars(benchmark::State& state) {
  std::vector<Tensor> tensors(1000);
  for (auto _ : state) {
    for (Tensor& tensor : tensors) tensor = Tensor(DType::kFloat, Shape());
    for (Tensor& tensor : tensors) tensor = Tensor();
  }
  state.SetItemsProcessed(state.iterations() * tensors.size());
}
BENCHMARK(BM_MakeManyScalars);

void BM_CopyTensor(benchmark::State& state) {
  const Tensor tensor(DType::kFloat, {2, 3});
  for (auto _ : state) {
    Tensor copy = tensor;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(BM_CopyTensor);

void BM_MoveTensor(benchmark::State& state) {
  Tensor a(DType::kFloat, {2, 3}), b;
  for (auto _ : state) {
    b = std::move(a);
    benchmark::DoNotOptimize(b);
    a = std::move(b);
    benchmark::DoNotOptimize(a);
  }
}
BENCHMARK(BM_MoveTensor);

void BM_Slice(benchmark::State& state) {
  const Tensor tensor(DType::kFloat, {64, 16});
  for (auto _ : state) benchmark::DoNotOptimize(tensor.Slice(3, 5));
}
BENCHMARK(BM_Slice);

}  // namespace
}  // namespace penstock
