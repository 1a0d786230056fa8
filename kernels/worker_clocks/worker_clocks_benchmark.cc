// SPDX-License-Identifier: Apache-2.0
//
// Measures what a step costs at the clocks (Begin, Advance and the end of the wait), for 10 to
// 10,000 workers of which all but one wait for the slowest one in each round. Time per step, one
// thread.
#include <benchmark/benchmark.h>

#include "core/base/check.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "kernels/worker_clocks/worker_clocks.h"

namespace penstock {
namespace {

// Each worker takes one step: all of them but the last one wait for the last one, which ends the
// waits.
void Round(WorkerClocks& clocks, int64_t workers, const WorkerClocks::Limits& limits,
           int64_t* step_id, int64_t* ended) {
  for (int64_t worker = 0; worker < workers; ++worker) {
    const UpdateOrigin origin{.step_id = ++*step_id};
    clocks.Begin(worker, "", origin);
    clocks.Advance(
        worker, limits, [](const WorkerClocks::Advanced&) {}, {nullptr, origin},
        Done([ended](const Status& status) {
          CHECK_OK(status);
          ++*ended;
        }));
  }
}

void StepsInLockStep(benchmark::State& state) {
  const int64_t workers = state.range(0);
  const auto clocks = *WorkerClocks::Make("clocks", workers);
  CHECK_OK(clocks->UseTime(Scheduler::Real(), Env::Real()));
  const WorkerClocks::Limits limits{.bound = 0, .timeout_ns = 60'000'000'000};
  int64_t step_id = 0, ended = 0;
  // Before a worker has taken a step nobody waits for it.
  for (int64_t worker = 0; worker < workers; ++worker) {
    clocks->Begin(worker, "", {.step_id = ++step_id});
  }
  for (auto _ : state) Round(*clocks, workers, limits, &step_id, &ended);
  CHECK(ended == workers * state.iterations());
  state.SetItemsProcessed(ended);
  state.counters["ns/step"] = benchmark::Counter(
      1e-9 * static_cast<double>(ended), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  clocks->Shutdown();
}
BENCHMARK(StepsInLockStep)->Arg(10)->Arg(100)->Arg(1'000)->Arg(10'000);

}  // namespace
}  // namespace penstock
