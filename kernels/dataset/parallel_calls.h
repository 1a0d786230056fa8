// SPDX-License-Identifier: Apache-2.0
//
// ParallelCalls: runs calls of a function for an iterator's elements, and returns their results in
// the order in which the calls began.
//
// One caller at a time. The destructor cancels the calls and waits for their end.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "kernels/dataset/captured_function.h"

namespace penstock {

class ParallelCalls {
 public:
  ParallelCalls(const IteratorContext& ctx, ElementCall function);
  ~ParallelCalls();

  bool empty() const { return calls_.empty(); }
  int64_t size() const { return static_cast<int64_t>(calls_.size()); }
  // Begins a call. If the function is quick and does not wait, runs it on this thread, because
  // passing it to the pool would take longer.
  void Begin(const IteratorContext& ctx, Element args);
  // Waits until the oldest call has ended. If the step is cancelled meanwhile, returns the status
  // with which the step was cancelled. REQUIRES: !empty().
  Status WaitForFirst(const IteratorContext& ctx);
  // Removes the oldest call, and returns its status and its results. REQUIRES: WaitForFirst has
  // returned OK.
  Status TakeFirst(Element* results);

  // Waits for all calls, and writes their results.
  Status Save(const IteratorContext& ctx, StateWriter* writer);
  // `spec`: that of the results.
  Status Restore(const ElementSpec& spec, StateReader* reader);

 private:
  struct Call {
    std::atomic<bool> ended = false;
    Status status;
    Element results;
  };
  Status WaitFor(const IteratorContext& ctx, const Call& call);
  bool IsQuick() const;
  void RunHere(const IteratorContext& ctx, Element args, Call* call);

  Cancellation stop_;
  const IteratorContext background_;
  const ElementCall function_;
  std::deque<std::shared_ptr<Call>> calls_;
  int64_t samples_ = 0,
          nanos_ = 0;  // the number of calls timed on this thread; the estimated time of a call
  Mutex mu_;
  Condition ended_;
  int64_t running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
