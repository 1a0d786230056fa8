// SPDX-License-Identifier: Apache-2.0
//
// Join: calls one continuation when several asynchronous operations have ended. Wait: blocks until
// one asynchronous operation has ended.
//
// Thread-safe: the parts and the continuation may be called on any threads, at the same time. A
// Join calls `done` on the thread that releases it last, with no lock held. Only one thread may
// call Wait::Get, and only once.
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
// The destructor calls `done`, with the first error of the parts, or OK. Each part holds a
// reference to the Join until it has been called, so `done` runs when all parts have been called
// and the last shared_ptr is gone.
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
  // `what` completes "waits for ..." in a simulation's list of waits. It must never be freed.
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
