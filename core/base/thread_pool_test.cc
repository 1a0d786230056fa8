// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// The cost of one index, in nanoseconds: large enough that the pool always splits the loop among
// threads.
constexpr double kExpensive = 1e6;

TEST(ThreadPool, RunsEverythingBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool("test", 3);
    EXPECT_EQ(pool.num_threads(), 3);
    for (int i = 0; i < 1000; ++i) {
      pool.Schedule([&] {
        // A closure that is scheduled while the pool is being destroyed runs, too.
        pool.Schedule([&] { ++ran; });
        ++ran;
      });
    }
  }
  EXPECT_EQ(ran, 2000);
}

TEST(ThreadPool, ZeroMeansOneThreadPerCore) {
  ThreadPool pool("test", 0);
  EXPECT_EQ(pool.num_threads(), std::thread::hardware_concurrency());
}

TEST(ThreadPool, TakesMoveOnlyClosures) {
  std::atomic<int> seen{0};
  {
    ThreadPool pool("test", 1);
    pool.Schedule([&seen, value = std::make_unique<int>(7)] { seen = *value; });
  }
  EXPECT_EQ(seen, 7);
}

TEST(ThreadPool, ThreadsAreNamed) {
  std::string name;
  {
    ThreadPool pool("a long pool name", 1);
    pool.Schedule([&] {
      char buffer[16];
      pthread_getname_np(pthread_self(), buffer, sizeof buffer);
      name = buffer;
    });
  }
  EXPECT_EQ(name, "a long pool/0");
}

TEST(ThreadPool, WakesSleepingThreads) {
  ThreadPool pool("test", 2);
  for (int round = 0; round < 20; ++round) {
    // Waits for longer than idle threads spin.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::atomic<int> here{0}, done{0};
    // Both threads are needed at once.
    for (int i = 0; i < 2; ++i) {
      pool.Schedule([&] {
        ++here;
        while (here < 2) std::this_thread::yield();
        ++done;
      });
    }
    while (done < 2) std::this_thread::yield();
  }
}

TEST(ThreadPool, ManyProducers) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool("test", 4);
    std::vector<std::thread> producers;
    for (int t = 0; t < 4; ++t) {
      producers.emplace_back([&] {
        for (int i = 0; i < 5000; ++i) pool.Schedule([&] { ++ran; });
      });
    }
    for (std::thread& producer : producers) producer.join();
  }
  EXPECT_EQ(ran, 20000);
}

// Every unit runs exactly once, for all sizes.
TEST(ParallelFor, CoversTheRangeOnce) {
  ThreadPool pool("test", 3);
  for (int64_t total : {0, 1, 2, 3, 7, 64, 65, 1000, 100003}) {
    for (double cost_ns : {0.0, 1.0, 50.0, 1e4, kExpensive, 1e30}) {
      std::vector<std::atomic<int>> seen(total);
      pool.ParallelFor(total, cost_ns, [&](int64_t begin, int64_t end) {
        ASSERT_LE(0, begin);
        ASSERT_LT(begin, end);
        ASSERT_LE(end, total);
        for (int64_t i = begin; i < end; ++i) ++seen[i];
      });
      for (int64_t i = 0; i < total; ++i) ASSERT_EQ(seen[i], 1) << i << " of " << total;
    }
  }
}

TEST(ParallelFor, SmallWorkRunsHereAtOnce) {
  ThreadPool pool("test", 4);
  int calls = 0;
  pool.ParallelFor(1000, 5.0, [&](int64_t begin, int64_t end) {  // 5 us in total
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelFor, UsesSeveralThreads) {
  ThreadPool pool("test", 4);
  std::atomic<int> at_once{0};
  // Two blocks wait for each other, so one thread alone could not finish the loop.
  pool.ParallelFor(4, kExpensive, [&](int64_t, int64_t) {
    ++at_once;
    while (at_once < 2) std::this_thread::yield();
  });
  EXPECT_GE(at_once, 2);
}

TEST(ParallelFor, NeverUsesMoreThreadsThanThePoolHas) {
  ThreadPool pool("test", 2);
  std::atomic<int> now{0}, most{0};
  pool.ParallelFor(100, kExpensive, [&](int64_t, int64_t) {
    const int here = ++now;
    int seen = most;
    while (here > seen && !most.compare_exchange_weak(seen, here)) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    --now;
  });
  EXPECT_LE(most, 2);
}

TEST(ParallelFor, RunsAloneWhenThePoolIsBusy) {
  ThreadPool pool("test", 2);
  std::atomic<bool> release{false};
  std::atomic<int> blocked{0};
  for (int i = 0; i < 2; ++i) {
    pool.Schedule([&] {
      ++blocked;
      while (!release) std::this_thread::yield();
    });
  }
  while (blocked < 2) std::this_thread::yield();
  std::set<std::thread::id> threads;
  pool.ParallelFor(100, kExpensive,
                   [&](int64_t, int64_t) { threads.insert(std::this_thread::get_id()); });
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  release = true;
}

TEST(ParallelFor, AnExceptionIsTheCallers) {
  ThreadPool pool("test", 2);
  for (int64_t bad = 0; bad < 100; ++bad) {  // on this thread or another
    EXPECT_THROW(pool.ParallelFor(100, kExpensive,
                                  [bad](int64_t begin, int64_t end) {
                                    if (begin <= bad && bad < end) throw std::bad_alloc();
                                    std::this_thread::yield();
                                  }),
                 std::bad_alloc);
  }
  std::atomic<int64_t> units{0};
  pool.ParallelFor(100, kExpensive, [&](int64_t begin, int64_t end) { units += end - begin; });
  EXPECT_EQ(units, 100);
}

// Runs nested loops on several threads at once, of which some belong to the pool.
TEST(ParallelFor, NestsWithoutDeadlock) {
  std::atomic<int64_t> units{0};
  {
    ThreadPool pool("test", 3);
    const auto nested = [&] {
      pool.ParallelFor(8, kExpensive, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          pool.ParallelFor(16, kExpensive, [&](int64_t b, int64_t e) { units += e - b; });
        }
      });
    };
    std::vector<std::thread> outside;
    for (int t = 0; t < 2; ++t) {
      outside.emplace_back([&] {
        for (int i = 0; i < 50; ++i) nested();
      });
    }
    for (int i = 0; i < 50; ++i) pool.Schedule(nested);
    for (std::thread& thread : outside) thread.join();
  }
  EXPECT_EQ(units, 150 * 8 * 16);
}

}  // namespace
}  // namespace penstock
