// SPDX-License-Identifier: Apache-2.0
//
// Measures rows gathered per second from a table far larger than the caches, with uniformly
// distributed ids.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>

#include "core/base/thread_pool.h"
#include "core/tensor/tensor.h"
#include "kernels/array/gather_rows.h"

namespace penstock {
namespace {

constexpr int64_t kTableBytes = int64_t{512} << 20;
constexpr int64_t kIds = 1 << 18;

const Tensor& Table() {
  static const Tensor& table = *[] {
    auto* t = new Tensor(DType::kFloat, {kTableBytes / 4});
    memset(t->mutable_raw_data(), 1, t->bytes());
    return t;
  }();
  return table;
}

void Gather(benchmark::State& state) {
  const int64_t depth = state.range(0), rows = kTableBytes / 4 / depth;
  Tensor ids(DType::kInt32, {kIds}), out(DType::kFloat, {kIds * depth});
  std::mt19937_64 random(1);
  for (int32_t& id : ids.mutable_flat<int32_t>()) id = static_cast<int32_t>(random() % rows);
  memset(out.mutable_raw_data(), 1, out.bytes());
  ThreadPool threads("gather", static_cast<int>(state.range(1)));
  const GatherPlan plan{.rows = rows, .row_elements = depth, .count = kIds};
  const void* table = Table().raw_data();
  for (auto _ : state) {
    CHECK_OK(CheckIndices(ids, rows, "indices"));
    GatherRows(DType::kFloat, plan, table, ids, out.mutable_raw_data(), threads);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kIds);
  state.SetBytesProcessed(state.iterations() * kIds * depth * 4);
}
BENCHMARK(Gather)
    ->ArgsProduct({{1, 4, 16, 20, 64, 128, 512}, {1, 2}})
    ->ArgNames({"depth", "threads"})
    ->UseRealTime();

void CheckAlone(benchmark::State& state) {
  Tensor ids(DType::kInt32, {kIds});
  memset(ids.mutable_raw_data(), 0, ids.bytes());
  for (auto _ : state) CHECK_OK(CheckIndices(ids, 1000, "indices"));
  state.SetItemsProcessed(state.iterations() * kIds);
}
BENCHMARK(CheckAlone);

}  // namespace
}  // namespace penstock
