// SPDX-License-Identifier: Apache-2.0
#include "core/base/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/base/cond_var.h"

namespace penstock {
namespace {

using std::chrono::steady_clock;
constexpr auto kMilli = std::chrono::milliseconds(1);

struct Shared {
  Mutex mu;
  CondVar changed;
  int value ABSL_GUARDED_BY(mu) = 0;

  void Set(int to) ABSL_LOCKS_EXCLUDED(mu) {
    MutexLock lock(mu);
    value = to;
    changed.NotifyAll();
  }
};

TEST(MutexTest, IsFreeBetweenUnlockAndLockAndAfterTheBlock) {
  Shared shared;
  {
    MutexLock lock(shared.mu);
    shared.value = 1;
    lock.Unlock();
    std::thread([&] { shared.Set(2); }).join();
    lock.Lock();
    EXPECT_EQ(shared.value, 2);
    lock.Unlock();
  }
  std::thread([&] { shared.Set(3); }).join();
  MutexLock lock(shared.mu);
  EXPECT_EQ(shared.value, 3);
}

TEST(MutexTest, SharedMutexLetsReadersInTogetherAndWritersAlone) {
  SharedMutex mu;
  bool written = false;
  std::thread writer;
  {
    ReaderMutexLock lock(mu);
    std::thread([&] { ReaderMutexLock other(mu); }).join();
    writer = std::thread([&] {
      WriterMutexLock other(mu);
      written = true;
    });
    std::this_thread::sleep_for(10 * kMilli);
    EXPECT_FALSE(written);
  }
  writer.join();
  EXPECT_TRUE(written);
}

TEST(CondVarTest, WaitHoldsTheMutexAgain) {
  Shared shared;
  std::thread setter;
  MutexLock lock(shared.mu);
  setter = std::thread([&] { shared.Set(1); });
  while (shared.value == 0) shared.changed.Wait(shared.mu);
  lock.Unlock();
  setter.join();
}

TEST(CondVarTest, TimedWaitsReturnFalseWhenTheTimeIsOver) {
  Shared shared;
  MutexLock lock(shared.mu);
  const auto start = steady_clock::now();
  while (shared.changed.WaitUntil(shared.mu, start + 5 * kMilli)) {
  }
  EXPECT_GE(steady_clock::now(), start + 5 * kMilli);
  const auto again = steady_clock::now();
  while (shared.changed.WaitFor(shared.mu, 5 * kMilli)) {
  }
  EXPECT_GE(steady_clock::now(), again + 5 * kMilli);
}

}  // namespace
}  // namespace penstock
