// SPDX-License-Identifier: Apache-2.0
//
// Compares CopyStrided with memcpy of the same number of bytes.
#include <benchmark/benchmark.h>

#include <cstring>

#include "core/base/thread_pool.h"
#include "core/tensor/tensor.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

Scheduler& Threads(int n) {
  static Scheduler& one = *new ThreadPool("one", 1);
  static Scheduler& all = *new ThreadPool("all", 0);
  return n == 1 ? one : all;
}

Tensor Ones(DType dtype, int64_t elements) {
  Tensor t(dtype, {elements});
  memset(t.mutable_raw_data(), 1, t.bytes());
  return t;
}

void Run(benchmark::State& state, DType dtype, const StridedCopy& copy, int threads) {
  int64_t elements = 1;
  for (const auto& dim : copy.dims) elements *= dim.count;
  const Tensor from = Ones(dtype, elements);
  Tensor to = Ones(dtype, elements);
  for (auto _ : state) {
    CopyStrided(dtype, copy, from.raw_data(), to.mutable_raw_data(), Threads(threads));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(from.bytes()));
}

// Measures [rows, columns] -> [columns, rows].
void Transpose(benchmark::State& state, DType dtype) {
  const int64_t rows = state.range(0), columns = state.range(1);
  StridedCopy copy;
  copy.Add(columns, 1, rows);
  copy.Add(rows, columns, 1);
  Run(state, dtype, copy, static_cast<int>(state.range(2)));
}
void Shapes(benchmark::internal::Benchmark* b) {
  for (const int threads : {1, 0}) {
    b->Args({16, 16, threads})
        ->Args({256, 256, threads})
        ->Args({1024, 1024, threads})
        ->Args({1000, 1000, threads})
        ->Args({4096, 4096, threads});
  }
}
BENCHMARK_CAPTURE(Transpose, int8, DType::kInt8)->Apply(Shapes)->UseRealTime();
BENCHMARK_CAPTURE(Transpose, half, DType::kHalf)->Apply(Shapes)->UseRealTime();
BENCHMARK_CAPTURE(Transpose, float, DType::kFloat)->Apply(Shapes)->UseRealTime();
BENCHMARK_CAPTURE(Transpose, double, DType::kDouble)->Apply(Shapes)->UseRealTime();

// Images: channels last <-> channels first.
void Channels(benchmark::State& state, DType dtype, bool to_first) {
  const int64_t batch = state.range(0), pixels = state.range(1), channels = state.range(2);
  StridedCopy copy;
  copy.Add(batch, pixels * channels, pixels * channels);
  copy.Add(pixels, to_first ? channels : 1, to_first ? 1 : channels);
  copy.Add(channels, to_first ? 1 : pixels, to_first ? pixels : 1);
  Run(state, dtype, copy, 1);
}
void Images(benchmark::internal::Benchmark* b) {
  b->Args({32, 224 * 224, 3})->Args({32, 56 * 56, 64})->Args({128, 28 * 28, 32});
}
BENCHMARK_CAPTURE(Channels, float_to_first, DType::kFloat, true)->Apply(Images);
BENCHMARK_CAPTURE(Channels, float_to_last, DType::kFloat, false)->Apply(Images);
BENCHMARK_CAPTURE(Channels, int8_to_first, DType::kInt8, true)->Apply(Images);

// Heads of attention: [batch, time, heads, depth] -> [batch, heads, time, depth].
void Heads(benchmark::State& state) {
  const int64_t batch = 8, time = 128, heads = 12, depth = 64;
  StridedCopy copy;
  copy.Add(batch, time * heads * depth, time * heads * depth);
  copy.Add(heads, depth, time * depth);
  copy.Add(time, heads * depth, depth);
  copy.Add(depth, 1, 1);
  Run(state, DType::kFloat, copy, 1);
}
BENCHMARK(Heads);

void Memcpy(benchmark::State& state) {
  const Tensor from = Ones(DType::kInt8, state.range(0));
  Tensor to = Ones(DType::kInt8, state.range(0));
  for (auto _ : state) {
    memcpy(to.mutable_raw_data(), from.raw_data(), from.bytes());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Memcpy)->Arg(1 << 10)->Arg(256 << 10)->Arg(4 << 20)->Arg(64 << 20);

}  // namespace
}  // namespace penstock
