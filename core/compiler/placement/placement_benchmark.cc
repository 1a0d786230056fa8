// SPDX-License-Identifier: Apache-2.0
//
// Measures how long the search for a placement takes on 64 devices, by number of nodes. The goal is
// less than two seconds for 100,000 nodes; items_per_second counts nodes, and is constant if the
// time is linear.
#include "benchmark/benchmark.h"
#include "core/compiler/placement/search.h"
#include "core/compiler/placement/testing/problems.h"

namespace penstock {
namespace {

void BM_FindPlacement(benchmark::State& state) {
  const PlacementProblem problem =
      RandomProblem(1, {.nodes = static_cast<int>(state.range(0)), .devices = 64});
  for (auto _ : state) benchmark::DoNotOptimize(FindPlacement(problem));
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_FindPlacement)
    ->RangeMultiplier(10)
    ->Range(1'000, 100'000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

}  // namespace
}  // namespace penstock
