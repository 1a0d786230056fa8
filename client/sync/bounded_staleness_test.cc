// SPDX-License-Identifier: Apache-2.0
//
// Tests BoundedStaleness on servers in one process: lockstep, a bound, and invalid options.
// tests/sim/bounded_staleness_sim_test.cc tests faults.
#include "client/sync/bounded_staleness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/training.h"
#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int kBoundedWorkers = 3;

struct BoundedRun {
  Status status;
  int64_t steps = 0, waits = 0, widest = 0;
  std::string text;
};

// Sleeps before each step, and watches the clocks after it.
class WatchClocks final : public TrainingHook {
 public:
  WatchClocks(const BoundedStaleness& bounded, int sleep_ms, BoundedRun& run)
      : bounded_(bounded), sleep_ms_(sleep_ms), run_(run) {}
  Status BeforeStep(int64_t) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms_));
    return OkStatus();
  }
  Outputs ExtraFetches(int64_t) override { return bounded_.clocks(); }
  void Fetched(std::vector<Tensor> values) override {
    std::vector<int64_t> counting;
    for (int i = 0; i < kBoundedWorkers; ++i) {
      if (values[1].flat<bool>()[i]) counting.push_back(values[0].flat<int64_t>()[i]);
    }
    const auto [least, most] = std::minmax_element(counting.begin(), counting.end());
    if (!counting.empty()) run_.widest = std::max(run_.widest, *most - *least);
  }

 private:
  const BoundedStaleness& bounded_;
  const int sleep_ms_;
  BoundedRun& run_;
};

BoundedRun TrainBounded(TestCluster& cluster, int worker, int64_t bound) {
  BoundedRun run;
  const std::string task = StrCat("/job:worker/task:", worker);
  Program program;
  const auto scope =
      program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = task}));
  const Variable w(program, "w", {}, Zeros());
  const Output update = GradientDescent(0.01).Minimize(program, Square(w - 1));
  BoundedStaleness bounded(
      program, {.bound = bound, .workers = kBoundedWorkers, .worker = worker, .task = task});
  TrainingOptions options{.target = cluster.target("worker", worker),
                          .is_chief = worker == 0,
                          .max_steps = 90,
                          .wait_seconds = 20,
                          .retry_seconds = 0.02,
                          .step_seconds = 20,
                          .stop_on_signals = false,
                          .say = [](const std::string&) {}};
  options.session.device_filters = {"/job:ps", task};
  TrainingLoop loop(program, {.train = bounded.Apply(update)}, options);
  WatchClocks watch(bounded, /*sleep_ms=*/worker == 2 ? 5 : 0, run);
  loop.AddHook(&bounded);
  loop.AddHook(&watch);
  run.status = loop.Run();
  run.steps = bounded.steps();
  run.waits = bounded.waits();
  run.text = bounded.Describe();
  return run;
}

TEST(BoundedStaleness, ClocksStayTogether) {
  for (const int64_t bound : {0, 2}) {
    TestCluster cluster({{"ps", 1}, {"worker", kBoundedWorkers}}, TestCluster::Direct());
    std::vector<BoundedRun> runs(kBoundedWorkers);
    std::vector<std::thread> threads;
    for (int worker = 0; worker < kBoundedWorkers; ++worker) {
      threads.emplace_back([&, worker] { runs[worker] = TrainBounded(cluster, worker, bound); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const BoundedRun& run : runs) {
      EXPECT_TRUE(run.status.ok()) << run.status;
      EXPECT_LE(run.widest, bound + 1);
    }
    EXPECT_GT(runs[0].waits + runs[1].waits, 0);
    EXPECT_THAT(runs[0].text,
                testing::MatchesRegex(StrCat("staleness bound ", bound,
                                             ": [0-9]+ of [0-9]+ steps "
                                             "waited for slower workers, [0-9.]+ s in total")));
  }
}

TEST(BoundedStaleness, OptionsThatCannotBe) {
  const struct {
    BoundedStalenessOptions options;
    const char* error;
  } mistakes[] = {
      {{.bound = -1}, "bound is -1"},
      {{.bound = 1, .workers = 2, .worker = 2}, "worker is 2 of 2 workers"},
      {{.bound = 1, .workers = 2, .worker = -1}, "worker is -1 of 2 workers"},
      {{.bound = 1, .workers = 0}, "worker is 0 of 0 workers"},
      {{.bound = 1, .timeout_seconds = -3}, "timeout_seconds is -3"},
      {{.bound = 1, .timeout_seconds = std::nan("")}, "timeout_seconds is nan"},
  };
  for (const auto& mistake : mistakes) {
    Program program;
    BoundedStaleness bounded(program, mistake.options);
    EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(program.status().message()), testing::HasSubstr(mistake.error));
    // The program keeps its error.
    EXPECT_FALSE(bounded.Apply(program.GlobalStep().Read()).valid());
  }
}

TEST(BoundedStaleness, ApplyIsCalledOnce) {
  Program program;
  BoundedStaleness bounded(program, {});
  TrainingLoop loop(
      program,
      {.train = program.GlobalStep().AssignAdd(Constant(program, Tensor::Scalar<int64_t>(1)))},
      {.max_steps = 1, .stop_on_signals = false});
  loop.AddHook(&bounded);
  EXPECT_THAT(std::string(loop.Run().message()), testing::HasSubstr("Apply is not the train op"));
  const Output step = program.GlobalStep().Read();
  EXPECT_TRUE(bounded.Apply(step).valid());
  EXPECT_FALSE(bounded.Apply(step).valid());
  EXPECT_THAT(std::string(program.status().message()),
              testing::StartsWith("BoundedStaleness: Apply was called twice (made at "));
}

}  // namespace
}  // namespace penstock::client
