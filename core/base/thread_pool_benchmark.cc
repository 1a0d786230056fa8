// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of handing work to another thread.
#include <atomic>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/base/thread_pool.h"

namespace penstock {
namespace {

ThreadPool& Pool() {
  static ThreadPool& pool = *new ThreadPool("bench", 2);
  return pool;
}

// Passes a closure to an idle pool and waits for it: the latency of one hand-over.
void BM_ScheduleAndWait(benchmark::State& state) {
  for (auto _ : state) {
    std::atomic<bool> done{false};
    Pool().Schedule([&] { done.store(true, std::memory_order_release); });
    while (!done.load(std::memory_order_acquire)) {
    }
  }
}
BENCHMARK(BM_ScheduleAndWait)->UseRealTime();

void BM_ScheduleMany(benchmark::State& state) {
  constexpr int kClosures = 1000;
  for (auto _ : state) {
    std::atomic<int> left{kClosures};
    for (int i = 0; i < kClosures; ++i) {
      Pool().Schedule([&] { left.fetch_sub(1, std::memory_order_release); });
    }
    while (left.load(std::memory_order_acquire) > 0) {
    }
  }
  state.SetItemsProcessed(state.iterations() * kClosures);
}
BENCHMARK(BM_ScheduleMany)->UseRealTime();

// A loop without work: the cost of dispatch alone.
void BM_ParallelForEmpty(benchmark::State& state) {
  for (auto _ : state) {
    Pool().ParallelFor(1000, 1e3, [](int64_t begin, int64_t) { benchmark::DoNotOptimize(begin); });
  }
}
BENCHMARK(BM_ParallelForEmpty)->UseRealTime();

// Computes y += 0.5 x for the elements [begin, end).
void Axpy(const std::vector<float>& x, std::vector<float>& y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) y[i] += 0.5f * x[i];
}
void BM_AxpyInline(benchmark::State& state) {
  std::vector<float> x(state.range(0)), y(state.range(0));
  for (auto _ : state) {
    Axpy(x, y, 0, state.range(0));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_AxpyInline)->Arg(16 << 10)->Arg(256 << 10);
void BM_AxpyParallelFor(benchmark::State& state) {
  std::vector<float> x(state.range(0)), y(state.range(0));
  for (auto _ : state) {
    Pool().ParallelFor(state.range(0), 0.2,
                       [&](int64_t begin, int64_t end) { Axpy(x, y, begin, end); });
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_AxpyParallelFor)->Arg(16 << 10)->Arg(64 << 10)->Arg(256 << 10)->UseRealTime();

}  // namespace
}  // namespace penstock
