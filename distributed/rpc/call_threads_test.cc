// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/call_threads.h"

#include <atomic>
#include <memory>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// Makes calls wait until the test opens the gate.
class Gate {
 public:
  CallThreads::Call Call() {
    return [this] {
      MutexLock lock(mu_);
      ++inside_;
      changed_.NotifyAll();
      while (!open_) changed_.Wait(mu_);
      --inside_;
      ++through_;
    };
  }
  void AwaitInside(int calls) {
    MutexLock lock(mu_);
    while (inside_ < calls) changed_.Wait(mu_);
  }
  int inside() {
    MutexLock lock(mu_);
    return inside_;
  }
  int through() {
    MutexLock lock(mu_);
    return through_;
  }
  void Open() {
    MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  int inside_ ABSL_GUARDED_BY(mu_) = 0;
  int through_ ABSL_GUARDED_BY(mu_) = 0;
};

TEST(CallThreadsTest, CallsRunAtTheSameTimeUpToALimit) {
  Gate gate;
  CallThreads threads;
  for (int i = 0; i < CallThreads::kThreadsMax + 10; ++i) {
    ASSERT_EQ(threads.Run(gate.Call()), OkStatus());
  }
  gate.AwaitInside(CallThreads::kThreadsMax);
  EXPECT_EQ(gate.inside(), CallThreads::kThreadsMax);
  EXPECT_EQ(gate.through(), 0);
  gate.Open();
  threads.Wait();
  EXPECT_EQ(gate.through(), CallThreads::kThreadsMax + 10) << "those that waited have run, too";
}

TEST(CallThreadsTest, TooManyAreRefused) {
  Gate gate;
  CallThreads threads;
  const int room = CallThreads::kThreadsMax + static_cast<int>(CallThreads::kWaitingMax);
  for (int i = 0; i < room; ++i) ASSERT_EQ(threads.Run(gate.Call()), OkStatus()) << i;
  bool ran = false;
  EXPECT_EQ(threads.Run([&] { ran = true; }),
            ResourceExhausted("1064 sessions are being created or closed already"));
  gate.Open();
  threads.Wait();
  EXPECT_FALSE(ran);
  EXPECT_EQ(gate.through(), room);
  EXPECT_EQ(threads.Run([&] { ran = true; }), OkStatus()) << "there is room again";
  threads.Wait();
  EXPECT_TRUE(ran);
}

TEST(CallThreadsTest, TheEndWaitsForTheCalls) {
  std::atomic<int> ended = 0;
  {
    CallThreads threads;
    for (int i = 0; i < 200; ++i) ASSERT_EQ(threads.Run([&] { ++ended; }), OkStatus());
  }
  EXPECT_EQ(ended, 200);
}

// A call releases the objects that it holds before Wait returns.
TEST(CallThreadsTest, ACallIsDestroyedWhenItHasEnded) {
  const auto held = std::make_shared<int>(1);
  CallThreads threads;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(threads.Run([held] {}), OkStatus());
  threads.Wait();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace penstock
