// SPDX-License-Identifier: Apache-2.0
//
// Tests that long steps regularly release the scheduler's threads for other work.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/forwarding_env.h"
#include "core/base/join.h"
#include "core/runtime/testing/held_scheduler.h"
#include "core/runtime/testing/test_flow.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

// A clock that each reading advances by 10 us.
class SlowClock final : public ForwardingEnv {
 public:
  SlowClock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns_ += 10'000; }

 private:
  int64_t now_ns_ = 0;
};

class SliceTest : public testing::Test {
 protected:
  std::unique_ptr<Executor> Chain(const std::string& op, int nodes, const Attrs& attrs = {}) {
    TestGraph g;
    Node* last = nullptr;
    for (int i = 0; i < nodes; ++i) {
      const auto before = last == nullptr ? std::vector<Node*>() : std::vector<Node*>{last};
      last = op == "NoOp" ? g.Add(op, {}, {}, before) : g.AddSum(op, before, attrs);
    }
    auto executor = MakeExecutor(g.Take(), {.device = task_.device.get(),
                                            .threads = &scheduler_,
                                            .env = &clock_,
                                            .timer = &DeadlineTimer::Real()});
    CHECK_OK(executor.status());
    return *std::move(executor);
  }
  // Runs a step by RunAsync. Returns the number of slices that the step took.
  int CountSlices(Executor& executor) {
    TestStep step;
    bool ended = false;
    executor.RunAsync(step.Args(), Done([&](const Status& status) {
                        EXPECT_EQ(status, OkStatus());
                        ended = true;
                      }));
    int slices = 0;
    for (; !scheduler_.held.empty(); ++slices) scheduler_.RunOne();
    EXPECT_TRUE(ended);
    return slices;
  }

  TestTask task_;
  HeldScheduler scheduler_;
  SlowClock clock_;
};

TEST_F(SliceTest, AStepOfMillisecondsYieldsAtOnceAndWhenItsCostsAreKnown) {
  const auto executor = Chain("TestSpin", 100, {{"micros", 1000}, {"declared", false}});
  for (int step = 0; step < 6; ++step) {
    const int slices = CountSlices(*executor);
    EXPECT_GE(slices, 20) << "in step " << step;
    EXPECT_LE(slices, 60) << "in step " << step;
  }
}

TEST_F(SliceTest, ManyCheapNodesYieldToo) {
  const auto executor = Chain("NoOp", 100'000);
  EXPECT_GE(CountSlices(*executor), 2);
}

TEST_F(SliceTest, AShortStepDoesNotYield) {
  EXPECT_EQ(CountSlices(*Chain("NoOp", 100)), 1);
  EXPECT_EQ(CountSlices(*Chain("TestSpin", 10, {{"micros", 50}})), 1);
}

TEST_F(SliceTest, RunKeepsItsThread) {
  const auto executor = Chain("TestSpin", 100, {{"micros", 1000}});
  TestStep step;
  EXPECT_EQ(executor->Run(step.Args()), OkStatus());
  EXPECT_TRUE(scheduler_.held.empty());
}

// Runs four times as many endless loops as there are threads.
class EndlessLoops {
 public:
  EndlessLoops() {
    FlowBuilder b;
    b.Fetch(b.For({"endless"}, b.Feed(0), {b.Sum("TestSum", {})},
                  [&](const FlowBuilder::Values& v) {
                    return FlowBuilder::Values{b.Sum("TestSum", {v[1], v[0]})};
                  })[0],
            0);
    executor_ = task_.Make(b.Take());
    for (int i = 0; i < 8; ++i) {
      const Tensor limit = Tensor::Scalar(std::numeric_limits<int64_t>::max());
      steps_.push_back(std::make_unique<Running>(limit, task_.threads));
      executor_->RunAsync(steps_.back()->step.Args(), steps_.back()->ended.done());
    }
  }
  ~EndlessLoops() {
    for (const auto& running : steps_) running->step.cancellation.Cancel(Aborted("the end"));
    for (const auto& running : steps_) EXPECT_EQ(running->ended.Get(), Aborted("the end"));
  }

  // Cancels step `i` and returns whether it ends while the others continue.
  bool Ends(size_t i) {
    steps_[i]->step.cancellation.Cancel(Aborted("the end"));
    return Soon([&] { return steps_[i]->ended.ended(); });
  }
  // Returns whether a closure gets a thread.
  bool RunsAnother() {
    const auto ran = std::make_shared<std::atomic<bool>>(false);
    task_.threads.Schedule([ran] { *ran = true; });
    return Soon([&] { return ran->load(); });
  }

 private:
  struct Running {
    Running(const Tensor& limit, Scheduler& threads)
        : step(1, {limit}), ended(threads, "a loop to end") {}
    TestStep step;
    Wait ended;
  };
  template <class Ready>
  static bool Soon(Ready ready) {
    for (int i = 0; i < 10'000 && !ready(); ++i) Env::Real().SleepForNanos(1'000'000);
    return ready();
  }

  TestTask task_{2};
  std::unique_ptr<Executor> executor_;
  std::vector<std::unique_ptr<Running>> steps_;
};

TEST(EndlessLoopsTest, LeaveTheThreadsToOtherClosures) {
  EndlessLoops loops;
  EXPECT_TRUE(loops.RunsAnother());
}

TEST(EndlessLoopsTest, EachEndsWhenItIsCancelled) {
  EndlessLoops loops;
  EXPECT_TRUE(loops.Ends(7));
  EXPECT_TRUE(loops.Ends(0));
}

}  // namespace
}  // namespace penstock
