// SPDX-License-Identifier: Apache-2.0
//
// Tests WorkerClocks under a simulated clock: fast and slow workers, workers that die, hang, leave
// and come back; and the records of a StateLog.
#include "kernels/worker_clocks/worker_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/op/testing/recording_log.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

// Workers that run steps on simulated threads. A step's id is unique, and has no other meaning.
struct Group {
  Group(SimScheduler& threads, SimEnv& env, int64_t workers)
      : threads(threads), env(env), clocks(*WorkerClocks::Make("c", workers)) {
    CHECK_OK(clocks->UseTime(threads, env));
  }

  // Begins a step and returns its id.
  int64_t Begin(int64_t worker) {
    clocks->Begin(worker, "", {.step_id = ++last_step_id});
    return last_step_id;
  }
  // Ends the step, and waits as the worker does.
  StatusOr<WorkerClocks::Advanced> Advance(int64_t worker, int64_t step_id,
                                           const WorkerClocks::Limits& limits,
                                           Cancellation* cancellation = nullptr) {
    WorkerClocks::Advanced advanced;
    Mutex mu;
    Condition changed(threads, "the end of Advance");
    bool over = false;
    Status status;
    clocks->Advance(
        worker, limits, [&](const WorkerClocks::Advanced& result) { advanced = result; },
        {cancellation, {.step_id = step_id}}, Done([&](Status result) {
          MutexLock lock(mu);
          over = true;
          status = std::move(result);
          changed.NotifyAll();
        }));
    MutexLock lock(mu);
    changed.Wait(mu, [&] { return over; });
    RETURN_IF_ERROR(status);
    return advanced;
  }
  // Takes a step that lasts `work_ns`; returns how long it waited then.
  double Step(int64_t worker, int64_t work_ns, const WorkerClocks::Limits& limits) {
    const int64_t step_id = Begin(worker);
    env.SleepForNanos(work_ns);
    const auto advanced = Advance(worker, step_id, limits);
    CHECK_OK(advanced.status());
    return advanced->waited_seconds;
  }
  // Returns the difference between the clocks of the workers that count.
  int64_t Spread() const {
    const WorkerClocks::Snapshot now = clocks->Read();
    std::vector<int64_t> counting;
    for (size_t i = 0; i < now.clocks.size(); ++i) {
      if (now.counts[i]) counting.push_back(now.clocks[i]);
    }
    if (counting.empty()) return 0;
    const auto [least, most] = std::minmax_element(counting.begin(), counting.end());
    return *most - *least;
  }

  SimScheduler& threads;
  SimEnv& env;
  const std::shared_ptr<WorkerClocks> clocks;
  int64_t last_step_id = 0;
};

void Simulate(int64_t workers, const std::function<void(Group&)>& body) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SimScheduler threads({.seed = seed});
    SimEnv env(threads, Env::Real());
    const Status status = threads.Run([&] {
      Group group(threads, env, workers);
      body(group);
    });
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(WorkerClocksTest, TheBoundIsKept) {
  constexpr int kSteps = 40;
  const std::vector<int64_t> work_ns = {1 * kMs, 3 * kMs, 10 * kMs};
  for (const int64_t bound : {0, 1, 3}) {
    Simulate(3, [&](Group& group) {
      int64_t widest = 0;
      double waited = 0;
      bool over = false;
      {
        const auto watch = group.threads.StartThread("watch", [&] {
          while (!over) {
            widest = std::max(widest, group.Spread());
            group.env.SleepForNanos(kMs / 2);
          }
        });
        std::vector<std::unique_ptr<Thread>> workers;
        for (int worker = 0; worker < 3; ++worker) {
          workers.push_back(group.threads.StartThread("worker", [&, worker] {
            for (int step = 0; step < kSteps; ++step) {
              const double seconds = group.Step(worker, work_ns[worker], {.bound = bound});
              if (worker == 0) waited += seconds;
            }
            group.clocks->Leave(worker);
          }));
        }
        workers.clear();
        over = true;
      }
      EXPECT_EQ(widest, bound + 1);
      // The fast worker waits 9 of every 10 ms, except in the first and the last steps.
      EXPECT_GT(waited, (kSteps - 2.0 * static_cast<double>(bound) - 2) * 0.009);
      EXPECT_THAT(group.clocks->Read().clocks, ElementsAre(kSteps, kSteps, kSteps));
    });
  }
}

TEST(WorkerClocksTest, AWorkerThatDoesNotMoveStopsTheOthersOnlyForATime) {
  Simulate(2, [](Group& group) {
    const WorkerClocks::Limits limits{.bound = 1, .timeout_ns = 100 * kMs};
    group.Step(1, 0, limits);
    double waited = 0;  // by worker 0, which begins with the clock of worker 1
    for (int step = 0; step < 20; ++step) waited += group.Step(0, kMs, limits);
    EXPECT_NEAR(waited, 0.1, 0.01);
    EXPECT_THAT(group.clocks->Read().counts, ElementsAre(true, false));
    // Worker 1 comes back with the lowest clock of the others, and finishes one step.
    EXPECT_EQ(group.Step(1, 0, limits), 0);
    EXPECT_THAT(group.clocks->Read().clocks, ElementsAre(21, 22));
    EXPECT_THAT(group.clocks->Read().counts, ElementsAre(true, true));
  });
}

// Makes worker 0 wait for worker 1, and calls `change` at 30 ms. Returns the time at which the wait
// ended.
int64_t WaitsUntil(Group& group, const std::function<void(int64_t step_id)>& change) {
  const int64_t step_id = group.Begin(1);
  int64_t ended_ns = 0;
  const auto fast = group.threads.StartThread("fast", [&] {
    group.Step(0, 0, {.bound = 0});
    ended_ns = group.env.NowNanos();
  });
  group.env.SleepForNanos(30 * kMs);
  EXPECT_EQ(ended_ns, 0);
  EXPECT_EQ(group.clocks->DebugString(),
            "WorkerClocks 'c': worker 0, after step 1, waits for worker 1, after step 0, with "
            "bound 0");
  change(step_id);
  group.env.SleepForNanos(kMs);
  return ended_ns - (group.env.NowNanos() - 31 * kMs);
}

TEST(WorkerClocksTest, NobodyWaitsForAWorkerThatIsGone) {
  Simulate(2, [](Group& group) {
    const auto failed = [&](int64_t step_id) { group.clocks->StepEnded(1, step_id); };
    EXPECT_EQ(WaitsUntil(group, failed), 30 * kMs);
    EXPECT_THAT(group.clocks->Read().counts, ElementsAre(true, false));
  });
  Simulate(2, [](Group& group) {
    EXPECT_EQ(WaitsUntil(group, [&](int64_t) { group.clocks->Leave(1); }), 30 * kMs);
  });
  Simulate(2, [](Group& group) {
    group.clocks->AddHolder(1);
    group.clocks->AddHolder(1);
    group.clocks->RemoveHolder(1);  // the worker has another holder, so it still counts
    EXPECT_EQ(WaitsUntil(group, [&](int64_t) { group.clocks->RemoveHolder(1); }), 30 * kMs);
  });
}

TEST(WorkerClocksTest, AStepThatHasAdvancedEndsQuietly) {
  Simulate(2, [](Group& group) {
    const int64_t step_id = group.Begin(1);
    ASSERT_TRUE(group.Advance(1, step_id, {.bound = 0}).ok());
    group.clocks->StepEnded(1, step_id);
    EXPECT_THAT(group.clocks->Read().counts, ElementsAre(false, true));
  });
}

TEST(WorkerClocksTest, ACancelledWaitEnds) {
  Simulate(2, [](Group& group) {
    group.Begin(1);
    const int64_t step_id = group.Begin(0);
    Cancellation cancellation;
    const auto cancel = group.threads.StartThread("cancel", [&] {
      group.env.SleepForNanos(10 * kMs);
      cancellation.Cancel(Cancelled("stopped"));
    });
    const auto advanced = group.Advance(0, step_id, {.bound = 0}, &cancellation);
    EXPECT_EQ(advanced.status().message(), "stopped");
    group.clocks->StepEnded(0, step_id);
    EXPECT_THAT(group.clocks->Read().clocks, ElementsAre(1, 0));
    EXPECT_THAT(group.clocks->Read().counts, ElementsAre(false, true));
  });
}

TEST(WorkerClocksTest, WaitsEndWhenTheClocksAreDropped) {
  Simulate(2, [](Group& group) {
    group.Begin(1);
    const auto drop = group.threads.StartThread("drop", [&] {
      group.env.SleepForNanos(10 * kMs);
      group.clocks->Shutdown();
    });
    const auto advanced = group.Advance(0, group.Begin(0), {.bound = 0});
    EXPECT_EQ(advanced.status().code(), StatusCode::kCancelled);
  });
}

// Worker 1 waits for worker 2 for longer than the timeout of worker 0, which waits for both, with
// three steps at a time.
TEST(WorkerClocksTest, AWaitingWorkerIsAlive) {
  Simulate(3, [](Group& group) {
    group.Begin(2);
    std::vector<std::unique_ptr<Thread>> steps;
    steps.push_back(group.threads.StartThread("worker 1", [&] {
      for (int step = 0; step < 3; ++step) group.Step(1, 0, {.bound = 0});
    }));
    group.env.SleepForNanos(150 * kMs);
    for (int step = 0; step < 3; ++step) {
      steps.push_back(group.threads.StartThread(
          "worker 0", [&] { group.Step(0, 0, {.bound = 0, .timeout_ns = 200 * kMs}); }));
    }
    steps.clear();
    EXPECT_THAT(group.clocks->Read().clocks, ElementsAre(3, 3, 0));
    EXPECT_THAT(group.clocks->Read().counts, ElementsAre(true, true, false));
  });
}

TEST(WorkerClocksTest, NumbersThatCannotBe) {
  for (const int64_t workers : {int64_t{-1}, int64_t{0}, WorkerClocks::kWorkersMax + 1}) {
    const auto made = WorkerClocks::Make("c", workers);
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(StrCat("workers is ", workers)));
  }
  const auto clocks = *WorkerClocks::Make("c", 2);
  EXPECT_TRUE(clocks->Check(1).ok());
  EXPECT_EQ(clocks->Check(2).message(), "worker is 2, but WorkerClocks 'c' has workers [0, 2)");
  EXPECT_EQ(clocks->Check(-1).code(), StatusCode::kInvalidArgument);
}

TEST(WorkerClocksTest, AStateLogHasTheClocks) {
  RecordingLog log;
  ResourceStore store, replica;
  CHECK_OK(store.AttachLog(&log));
  const auto make = []() -> StatusOr<std::shared_ptr<Resource>> {
    return WorkerClocks::Make("c", 2);
  };
  const auto clocks = std::static_pointer_cast<WorkerClocks>(
      *store.LookupOrCreate("", "c", WorkerClocks::kType, make));
  clocks->Begin(0, "", {.step_id = 1});
  for (int step = 0; step < 3; ++step) {
    clocks->Advance(
        0, {}, [](const WorkerClocks::Advanced&) {}, {nullptr, {.step_id = 1}},
        Done([](const Status& status) { CHECK_OK(status); }));
  }
  clocks->Begin(1, "", {.step_id = 2});
  EXPECT_THAT(log.Texts(), ElementsAre("c 0 create int64[2] 0 0", "c 1 set int64[] 0 int64[] 1",
                                       "c 2 set int64[] 0 int64[] 2", "c 3 set int64[] 0 int64[] 3",
                                       "c 4 set int64[] 1 int64[] 3"));
  ASSERT_TRUE(log.ReplayOn(replica).ok());
  const auto copy = std::static_pointer_cast<WorkerClocks>(*replica.Lookup("", "c"));
  EXPECT_THAT(copy->Read().clocks, ElementsAre(3, 3));
  EXPECT_THAT(copy->Read().counts, ElementsAre(false, false));
  // The first worker that counts again keeps its clock.
  copy->Begin(1, "", {.step_id = 3});
  EXPECT_THAT(copy->Read().clocks, ElementsAre(3, 3));
}

TEST(WorkerClocksTest, RecordsThatDoNotFit) {
  const auto clocks = *WorkerClocks::Make("c", 2);
  const auto replay = [&](const char* action, std::vector<Tensor> values) {
    return clocks->Replay({.action = action, .values = std::move(values)}, {}).code();
  };
  const StatusCode invalid = StatusCode::kInvalidArgument;
  EXPECT_EQ(replay("set", {Value(int64_t{0})}), invalid);
  EXPECT_EQ(replay("set", {Value(int64_t{2}), Value(int64_t{1})}), invalid);
  EXPECT_EQ(replay("set", {Value(int64_t{-1}), Value(int64_t{1})}), invalid);
  EXPECT_EQ(replay("set", {Value(int64_t{0}), Tensor::Scalar(1.f)}), invalid);
  EXPECT_EQ(replay("turn", {}), invalid);
  EXPECT_EQ(clocks->version(), 0);
  for (const Tensor& value : {Tensor::Scalar<int64_t>(1), Tensor::Vector<float>({1}),
                              Tensor::Vector(std::vector<int64_t>()), Tensor()}) {
    ResourceStore store;
    const ResourceChange change{{"c", "r", WorkerClocks::kType, 1}, 0, kCreateAction, {value}};
    EXPECT_EQ(StateReplayer(store, Env::Real()).Apply({.origin = {}, .parts = {&change, 1}}).code(),
              invalid);
  }
}

}  // namespace
}  // namespace penstock
