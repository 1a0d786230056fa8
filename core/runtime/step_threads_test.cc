// SPDX-License-Identifier: Apache-2.0
//
// Tests how threads offer nodes to each other. There are no real nodes, and the tests decide when
// the step's scheduled closures run, so the order is fixed.
#include "core/runtime/step_threads.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/runtime/executable.h"
#include "core/runtime/testing/held_scheduler.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

// A node is a number. Its work, if any, is a function in `bodies`. All nodes count as expensive.
class FakeWork final : public StepThreads::Work {
 public:
  explicit FakeWork(Iteration& root) : root_(root) {}
  void InitRunner(Runner* runner) override { runner->ready.here = &root_; }
  void CheckDeadline() override { ++deadlines_checked; }
  bool RunNodes(Runner& runner) override {
    ReadyQueues& ready = runner.ready;
    int nodes = 0;
    do {
      while (!ready.expensive.empty() || !ready.cheap.empty()) {
        if (runner.yields && nodes++ == slice) return false;
        if (ready.expensive.size() > 1) threads->Offer(ready);
        std::vector<uint32_t>& from = ready.cheap.empty() ? ready.expensive : ready.cheap;
        const uint32_t node = from.back();
        from.pop_back();
        {
          MutexLock lock(mu);
          ran_by[node] = &runner;
        }
        if (const auto body = bodies.find(node); body != bodies.end()) body->second();
      }
    } while (threads->TakeOffered(runner));
    return true;
  }

  StepThreads* threads = nullptr;
  int slice = 1'000;  // number of nodes
  std::map<uint32_t, std::function<void()>> bodies;
  Mutex mu;
  std::map<uint32_t, const Runner*> ran_by ABSL_GUARDED_BY(mu);
  int deadlines_checked = 0;

 private:
  Iteration& root_;
};

// A step with an empty graph and a StepThreads on `Threads`.
template <class Threads>
struct Fixture {
  template <class... Args>
  explicit Fixture(Args&&... args) : scheduler(std::forward<Args>(args)...) {
    work.threads = &threads;
  }
  // Begins a step with these ready nodes.
  void Begin(const std::vector<uint32_t>& nodes, const StepArgs& args = {}) {
    step.Begin(args);
    threads.Begin().ready.expensive = nodes;
  }
  size_t NumRan() {
    MutexLock lock(work.mu);
    return work.ran_by.size();
  }
  const Runner* RanBy(uint32_t node) {
    MutexLock lock(work.mu);
    const auto found = work.ran_by.find(node);
    return found == work.ran_by.end() ? nullptr : found->second;
  }

  TestTask task;
  Threads scheduler;
  std::unique_ptr<Executable> executable = *Executable::Make(TestGraph().Take(), *task.device);
  Iteration root{*executable, executable->loops()[0]};
  FakeWork work{root};
  RunningStep step{{.device = task.device.get(),
                    .threads = &scheduler,
                    .env = &Env::Real(),
                    .timer = &DeadlineTimer::Real()}};
  StepThreads threads{step, work};
};

class StepThreadsTest : public testing::Test {
 protected:
  std::optional<Fixture<HeldScheduler>> f_{std::in_place};
};

TEST_F(StepThreadsTest, OneNodeNeedsNoOtherThread) {
  f_->Begin({1});
  f_->threads.Run();
  EXPECT_EQ(f_->NumRan(), 1);
  EXPECT_FALSE(f_->step.shared());
  EXPECT_TRUE(f_->scheduler.held.empty());
}

TEST_F(StepThreadsTest, NodesToSpareInviteAsManyThreadsAsThereIsRoomFor) {
  f_->Begin({1, 2, 3, 4, 5});
  f_->threads.Run();
  EXPECT_EQ(f_->NumRan(), 5);
  EXPECT_TRUE(f_->step.shared());
  EXPECT_EQ(f_->scheduler.held.size(), 2) << "and the thread of Run";
}

TEST_F(StepThreadsTest, TheStepDoesNotWaitForThreadsThatDoNotCome) {
  f_->Begin({1, 2, 3});
  f_->threads.Run();  // with this scheduler, a wait would fail the test
  EXPECT_EQ(f_->RanBy(1), f_->RanBy(3));
  std::deque<Scheduler::Closure> late = std::move(f_->scheduler.held);
  ASSERT_EQ(late.size(), 2);
  f_.reset();
  for (Scheduler::Closure& closure : late) std::move(closure)();  // the step has been destroyed
}

TEST_F(StepThreadsTest, AThreadThatComesTakesWhatWasOffered) {
  f_->work.bodies[1] = [&] { f_->scheduler.RunOne(); };  // the node that the first thread keeps
  f_->Begin({1, 2, 3});
  f_->threads.Run();
  EXPECT_EQ(f_->NumRan(), 3);
  EXPECT_NE(f_->RanBy(1), f_->RanBy(3));
  EXPECT_EQ(f_->RanBy(2), f_->RanBy(3)) << "it takes all, since Run's thread is busy with 1";
}

TEST_F(StepThreadsTest, RunnersAreUsedAgain) {
  f_->work.bodies[1] = [&] { f_->scheduler.RunOne(); };
  f_->Begin({1, 2});
  f_->threads.Run();
  const Runner* const helper = f_->RanBy(2);
  EXPECT_NE(helper, f_->RanBy(1));
  f_->Begin({1, 2});
  f_->threads.Run();
  EXPECT_EQ(f_->RanBy(2), helper);
}

TEST_F(StepThreadsTest, RunWaitsForANodeThatWaits) {
  int waits = 0;
  f_->work.bodies[1] = [&] { f_->threads.AddActive(); };
  f_->scheduler.on_wait = [&](int64_t deadline_ns) {
    EXPECT_EQ(deadline_ns, Condition::kNever);
    if (++waits == 2) f_->threads.Leave();
    return true;
  };
  f_->Begin({1});
  f_->threads.Run();
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(f_->work.deadlines_checked, 0);
}

TEST_F(StepThreadsTest, RunChecksTheDeadlineWhenItHasComeAndWaitsOn) {
  std::vector<int64_t> deadlines;
  f_->work.bodies[1] = [&] { f_->threads.AddActive(); };
  f_->scheduler.on_wait = [&](int64_t deadline_ns) {
    deadlines.push_back(deadline_ns);
    if (deadlines.size() == 1) {
      f_->step.Stop(DeadlineExceeded("now"));
      return false;
    }
    f_->threads.Leave();
    return true;
  };
  f_->Begin({1}, {.deadline_ns = 5000});
  f_->threads.Run();
  EXPECT_EQ(deadlines, (std::vector<int64_t>{5000, Condition::kNever}));
  EXPECT_EQ(f_->work.deadlines_checked, 1);
}

TEST_F(StepThreadsTest, RunsIdleThreadComesFirstForNodesOfferedFromElsewhere) {
  f_->work.bodies[1] = [&] { f_->threads.AddActive(); };
  f_->scheduler.on_wait = [&](int64_t) {
    const ReadyNode node{&f_->root, 2};
    f_->threads.Share({&node, 1});
    f_->threads.Leave();
    return true;
  };
  f_->Begin({1});
  f_->threads.Run();
  EXPECT_EQ(f_->RanBy(2), f_->RanBy(1));
  EXPECT_TRUE(f_->scheduler.held.empty());
}

TEST_F(StepThreadsTest, AStepThatRunsElsewhereEndsOnceWhenTheLastHasLeft) {
  int ended = 0;
  f_->work.bodies[1] = [&] { f_->threads.AddActive(); };
  f_->Begin({1});
  f_->step.Share();
  f_->threads.RunAsync([&] { ++ended; }, /*starts_here=*/false);
  EXPECT_EQ(f_->NumRan(), 0);
  f_->scheduler.RunOne();
  EXPECT_EQ(f_->NumRan(), 1);
  EXPECT_EQ(ended, 0) << "a node waits";
  f_->threads.Leave();
  EXPECT_EQ(ended, 0) << "not inside Leave, which a timer may call";
  f_->scheduler.RunOne();
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(f_->scheduler.held.empty());
}

TEST_F(StepThreadsTest, AStepThatStartsHereMayHaveEndedAtOnce) {
  int ended = 0;
  f_->Begin({1, 2});
  f_->step.Share();
  f_->threads.RunAsync([&] { ++ended; }, /*starts_here=*/true);
  EXPECT_EQ(f_->NumRan(), 2);
  EXPECT_EQ(ended, 1);
}

TEST_F(StepThreadsTest, ARunnerGoesOnBehindWhatElseIsScheduled) {
  int ended = 0;
  size_t ran_before = 0;
  f_->work.slice = 1;
  f_->Begin({1, 2});
  f_->step.Share();
  f_->threads.RunAsync([&] { ++ended; }, /*starts_here=*/false);
  f_->scheduler.Schedule([&] { ran_before = f_->NumRan(); });
  while (!f_->scheduler.held.empty()) f_->scheduler.RunOne();
  EXPECT_EQ(ran_before, 1);
  EXPECT_EQ(f_->NumRan(), 2);
  EXPECT_EQ(ended, 1);
}

TEST_F(StepThreadsTest, TheStepWaitsForARunnerThatHasYielded) {
  size_t ran_before = 0;
  f_->work.slice = 1;
  f_->work.bodies[1] = [&] {
    f_->scheduler.RunOne();
    ran_before = f_->NumRan();
  };
  f_->scheduler.on_wait = [&](int64_t) {
    f_->scheduler.RunOne();
    return true;
  };
  f_->Begin({1, 2, 3});
  f_->threads.Run();
  EXPECT_EQ(ran_before, 2) << "the helper has yielded";
  EXPECT_EQ(f_->NumRan(), 3);
  EXPECT_EQ(f_->RanBy(2), f_->RanBy(3));
}

TEST_F(StepThreadsTest, TheThreadOfRunDoesNotYield) {
  f_->work.slice = 0;
  f_->Begin({1, 2});
  f_->threads.Run();
  EXPECT_EQ(f_->RanBy(1), f_->RanBy(2));
  EXPECT_EQ(f_->scheduler.held.size(), 1) << "the invitation";
}

TEST_F(StepThreadsTest, ReadyHereIsTheRunnerOfThisStepOnThisThread) {
  Fixture<HeldScheduler> inner;
  EXPECT_EQ(f_->threads.ReadyHere(), nullptr);
  inner.work.bodies[7] = [&] {
    EXPECT_EQ(f_->threads.ReadyHere(), nullptr);
    EXPECT_EQ(inner.threads.ReadyHere(), &inner.RanBy(7)->ready);
  };
  f_->work.bodies[1] = [&] {
    EXPECT_EQ(f_->threads.ReadyHere(), &f_->RanBy(1)->ready);
    inner.Begin({7});
    inner.threads.Run();
    EXPECT_EQ(f_->threads.ReadyHere(), &f_->RanBy(1)->ready);
  };
  f_->Begin({1});
  f_->threads.Run();
  EXPECT_EQ(inner.NumRan(), 1);
  EXPECT_EQ(f_->threads.ReadyHere(), nullptr);
}

// On real threads, each of two nodes waits until the other has begun.
TEST(StepThreadsOnAPoolTest, TwoNodesRunAtTheSameTime) {
  Fixture<ThreadPool> f("test", 2);
  for (int round = 0; round < 50; ++round) {
    Condition begun(f.scheduler, "the other node");
    Mutex mu;
    int num_begun = 0;
    bool both = true;
    const auto meet = [&] {
      MutexLock lock(mu);
      ++num_begun;
      begun.NotifyAll();
      both &= begun.WaitUntil(mu, Env::Real().NowNanos() + 10'000'000'000,
                              [&] { return num_begun == 2; });
    };
    f.work.bodies = {{1, meet}, {2, meet}};
    f.Begin({1, 2});
    f.threads.Run();
    ASSERT_TRUE(both);
    ASSERT_NE(f.RanBy(1), f.RanBy(2));
  }
}

}  // namespace
}  // namespace penstock
