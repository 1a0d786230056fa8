// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: a fixed set of threads that run closures; also the one way to split a loop.
//
// An idle thread spins for about 50 us before it blocks: on virtual machines waking a sleeping core
// costs 50-100 us, more than most ops. Thread-safe. Destruction runs what is queued, then joins.
// Closures must not block for long: whatever waits for the outside world is an async kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"

namespace penstock {

class ThreadPool {
 public:
  // num_threads >= 1; 0 means one per core. `name` shows in debuggers and traces.
  ThreadPool(const std::string& name, int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  void Schedule(absl::AnyInvocable<void() &&> closure);

  // Calls fn(begin, end) on disjoint ranges that cover [0, total), on this thread and on pool
  // threads that are free, and returns when all are done. Work under about 10 us in all runs here
  // at once. `cost_ns` is the rough cost of one unit. Safe to call from a pool thread: the caller
  // takes part, so it cannot deadlock.
  void ParallelFor(int64_t total, double cost_ns,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
