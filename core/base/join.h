// SPDX-License-Identifier: Apache-2.0
//
// Join: calls one continuation when several asynchronous operations have ended. Wait: blocks until
// one asynchronous operation has ended.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock {

//   auto join = std::make_shared<Join>(std::move(done));
//   for (Worker& worker : workers) worker.Start(Join::Part(join));
// Calls `done` with the first error, or OK, when all parts have been called and `join` has been
// released.
class Join {
 public:
  explicit Join(Done done) : done_(std::move(done)) {}
  ~Join() { std::move(done_)(std::move(status_)); }

  static Done Part(std::shared_ptr<Join> join) {
    return Done([join = std::move(join)](Status status) { join->Ended(std::move(status)); });
  }

 private:
  void Ended(Status status) {
    MutexLock lock(mu_);
    if (status_.ok()) status_ = std::move(status);
  }

  Mutex mu_;
  Status status_ ABSL_GUARDED_BY(mu_);
  Done done_;
};

class Wait {
 public:
  // `what` completes "waits for ..." in a list of the waits. The text must never be freed.
  Wait(Scheduler& scheduler, const char* what) : ended_condition_(scheduler, what) {}

  // Returns the continuation to pass to the operation. REQUIRES: Get is called before the Wait is
  // destroyed.
  Done done() {
    return Done([this](Status status) {
      MutexLock lock(mu_);
      status_ = std::move(status);
      ended_.store(true, std::memory_order_release);
      ended_condition_.NotifyAll();
    });
  }
  // Blocks until the operation has ended. The operation needs a deadline of its own.
  Status Get() {
    MutexLock lock(mu_);
    ended_condition_.Wait(mu_, [this] { return ended_.load(std::memory_order_relaxed); });
    return std::move(status_);
  }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  Mutex mu_;
  Condition ended_condition_;
  std::atomic<bool> ended_{false};  // changed under mu_
  Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
