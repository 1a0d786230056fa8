// SPDX-License-Identifier: Apache-2.0
//
// Trains asynchronously with BoundedStaleness on a simulated cluster of a parameter server and two
// workers of different speed: the clocks differ by no more than the bound allows; a worker that is
// killed, cut off, slow or at the end of its data does not stop the other one; when it comes back,
// the other one waits for it again.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/seconds.h"
#include "client/sync/bounded_staleness.h"
#include "client/training.h"
#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/op/gradient.h"
#include "distributed/sim/sim_cluster.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr double kMs = 1e-3;

std::string WorkerName(int index) { return StrCat("/job:worker/task:", index); }

struct WorkerPlan {
  double step_seconds = 1 * kMs;
  int64_t steps = 0;         // after which its data end; 0: until max_steps
  int64_t hangs_after = -1;  // the number of its steps after which it hangs for hang_seconds
  double hang_seconds = 0;
};

struct Observed {
  int64_t steps = 0, waits = 0;
  double waited_seconds = 0;
  Status status;
};

// Makes a worker's steps take a given time, and watches the clocks.
class Pace final : public TrainingHook {
 public:
  Pace(Env& env, const WorkerPlan& plan, BoundedStaleness& bounded, int64_t& widest)
      : env_(env), plan_(plan), bounded_(bounded), widest_(widest) {}
  Outputs ExtraFetches(int64_t) override { return bounded_.clocks(); }
  void Fetched(std::vector<Tensor> values) override {
    const auto clocks = values[0].flat<int64_t>();
    const auto counts = values[1].flat<bool>();
    if (!counts[0] || !counts[1]) return;
    widest_ = std::max(widest_, std::abs(clocks[0] - clocks[1]));
  }
  Status BeforeStep(int64_t) override {
    const double hang_seconds = steps_ == plan_.hangs_after ? plan_.hang_seconds : 0;
    env_.SleepForNanos(Nanos(plan_.step_seconds + hang_seconds));
    return OkStatus();
  }
  Status AfterStep(const StepResult&, bool*) override {
    ++steps_;
    return OkStatus();
  }
  int64_t steps() const { return steps_; }

 private:
  Env& env_;
  const WorkerPlan plan_;
  BoundedStaleness& bounded_;
  int64_t& widest_;
  int64_t steps_ = 0;
};

struct Training {
  int64_t bound = 1;
  double timeout_seconds = 5;
  int64_t max_steps = 200;
  std::vector<WorkerPlan> plans;
  // When worker 1 becomes unreachable, and until when; 0: never.
  double frozen_from_seconds = 0, frozen_to_seconds = 0;

  std::vector<Observed> seen = std::vector<Observed>(2);
  int64_t widest = 0;  // the greatest difference of the clocks, when both workers counted
  SimCluster* cluster = nullptr;

  void TrainAs(int worker, SimScheduler& scheduler, SimEnv& env) {
    Program program;
    const auto devices = program.DeviceFunctionScope(
        ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = WorkerName(worker)}));
    const Variable w(program, "w", {}, Zeros());
    const Output loss = Square(w - 1);
    BoundedStaleness bounded(program, {.bound = bound,
                                       .workers = 2,
                                       .worker = worker,
                                       .timeout_seconds = timeout_seconds,
                                       .task = WorkerName(worker)});
    const Output train = bounded.Apply(GradientDescent(0.01).Minimize(program, loss));
    Pace pace(env, plans[worker], bounded, widest);
    int64_t left = plans[worker].steps;
    const bool ends = left > 0;
    TrainingStep step{.train = train};
    step.next_batch = [&](int64_t) -> StatusOr<std::vector<Tensor>> {
      if (ends && left-- == 0) return OutOfRange("no more rows");
      return std::vector<Tensor>();
    };
    TrainingOptions options{.is_chief = worker == 0,
                            .max_steps = max_steps,
                            .retry_seconds = 0.001,
                            .max_failures_in_a_row = 100,
                            .stop_on_signals = false};
    options.new_session = [&] {
      return cluster->NewSession(StrCat("client-", worker), "worker", worker,
                                 {.device_filters = {"/job:ps", WorkerName(worker)}});
    };
    options.say = [](const std::string&) {};
    options.env = &env;
    options.scheduler = &scheduler;
    TrainingLoop loop(program, step, options);
    loop.AddHook(&bounded);
    loop.AddHook(&pace);
    Observed& own = seen[worker];
    own.status = loop.Run();
    own.steps = pace.steps();
    own.waits = bounded.waits();
    own.waited_seconds = bounded.waited_seconds();
  }

  void Run(uint64_t seed) {
    SimScheduler scheduler({.seed = seed});
    SimEnv env(scheduler, Env::Real());
    const Status ran = scheduler.Run([&] {
      SimCluster simulated(scheduler, env, {{"ps", 1}, {"worker", 2}});
      cluster = &simulated;
      std::vector<std::unique_ptr<Thread>> clients;
      for (int worker = 0; worker < 2; ++worker) {
        clients.push_back(scheduler.StartThread(StrCat("client-", worker),
                                                [&, worker] { TrainAs(worker, scheduler, env); }));
      }
      if (frozen_from_seconds > 0) {
        env.SleepForNanos(Nanos(frozen_from_seconds));
        simulated.network().Freeze(SimEnd::Of(simulated.task("worker", 1).self()).host,
                                   Nanos(frozen_to_seconds));
      }
      clients.clear();
    });
    ASSERT_EQ(ran, OkStatus());
  }
};

TEST(BoundedStalenessSim, TheFastWorkerWaitsForTheSlowOne) {
  for (const int64_t bound : {0, 1, 4}) {
    for (const uint64_t seed : {1, 2, 3}) {
      Training training{.bound = bound, .plans = {{1 * kMs}, {20 * kMs}}};
      training.Run(seed);
      for (const Observed& each : training.seen) {
        EXPECT_EQ(each.status, OkStatus());
        EXPECT_GE(each.steps, 80) << "no worker takes many more steps than the other";
      }
      EXPECT_LE(training.widest, bound + 1);
      EXPECT_GE(training.widest, bound == 0 ? 0 : bound);
      EXPECT_GT(training.seen[0].waits, 60);
      EXPECT_GT(training.seen[0].waited_seconds, 1);
    }
  }
}

TEST(BoundedStalenessSim, WithoutNeedNobodyWaits) {
  Training training{.bound = 1'000, .plans = {{1 * kMs}, {20 * kMs}}};
  training.Run(1);
  EXPECT_EQ(training.seen[0].waits, 0);
  EXPECT_LT(training.seen[1].steps, 50);
}

TEST(BoundedStalenessSim, AWorkerWhoseDataEndLeaves) {
  Training training{.plans = {{1 * kMs}, {.step_seconds = 20 * kMs, .steps = 10}}};
  training.Run(1);
  for (const Observed& each : training.seen) EXPECT_EQ(each.status, OkStatus());
  EXPECT_EQ(training.seen[1].steps, 10);
  EXPECT_EQ(training.seen[0].steps, 190);
  EXPECT_LT(training.seen[0].waited_seconds, 1) << "it did not wait for the timeout";
}

TEST(BoundedStalenessSim, AHungWorkerIsWaitedForUntilTheTimeoutAndComesBack) {
  Training training{.bound = 1, .timeout_seconds = 3, .max_steps = 2'000};
  training.plans = {{5 * kMs}, {.step_seconds = 5 * kMs, .hangs_after = 10, .hang_seconds = 5}};
  training.Run(1);
  for (const Observed& each : training.seen) EXPECT_EQ(each.status, OkStatus());
  EXPECT_NEAR(training.seen[0].waited_seconds, 3, 1.5);
  EXPECT_LE(training.widest, 2);
  EXPECT_GT(training.seen[1].steps, 500) << "it trains after the hang";
  EXPECT_GT(training.seen[0].steps - training.seen[1].steps, 100) << "the other went on alone";
}

// Worker 1 is always within a step, so it is in a step when it becomes unreachable. The parameter
// server ends that step long before the session's lease ends.
TEST(BoundedStalenessSim, AWorkerThatIsCutOffInAStepIsNotWaitedFor) {
  Training training{.bound = 1, .timeout_seconds = 0, .max_steps = 2'000};
  training.plans = {{5 * kMs}, {.step_seconds = 0}};
  training.frozen_from_seconds = 2;
  training.frozen_to_seconds = 100;
  training.Run(1);
  EXPECT_EQ(training.seen[0].status, OkStatus());
  EXPECT_GT(training.seen[0].waited_seconds, 1);
  EXPECT_LT(training.seen[0].waited_seconds, 20);
  EXPECT_LE(training.widest, 2);
}

}  // namespace
}  // namespace penstock::client
