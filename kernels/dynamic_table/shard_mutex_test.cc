// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/shard_mutex.h"

#include <atomic>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// Writers increment two counters, and readers compare them, on real threads.
void CountUnder(ShardMutex& mu) {
  constexpr int kThreads = 4, kRounds = 2000;
  int64_t first = 0, second = 0;  // equal unless a writer holds the lock
  std::atomic<int> readers{0}, torn{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(Scheduler::Real().StartThread("writer", [&] {
      for (int k = 0; k < kRounds; ++k) {
        mu.Lock(Scheduler::Real());
        ++first;
        torn += readers.load();
        ++second;
        mu.Unlock();
      }
    }));
    threads.push_back(Scheduler::Real().StartThread("reader", [&] {
      for (int k = 0; k < kRounds; ++k) {
        const ShardReaderLock lock(mu, Scheduler::Real());
        ++readers;
        torn += first == second ? 0 : 1;
        --readers;
      }
    }));
  }
  threads.clear();  // waits for their ends
  EXPECT_EQ(first, kThreads * kRounds);
  EXPECT_EQ(second, kThreads * kRounds);
  EXPECT_EQ(torn, 0);
}

TEST(ShardMutex, HasOneWriterOrManyReaders) {
  for (const bool waits_for_files : {false, true}) {
    ShardMutex mu(waits_for_files);
    CountUnder(mu);
    const ShardReaderLock one(mu, Scheduler::Real()), two(mu, Scheduler::Real());
  }
}

}  // namespace
}  // namespace penstock
