// SPDX-License-Identifier: Apache-2.0
//
// Join: one end for several asynchronous operations. Wait: blocks until one has ended.
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
// `done` is called with the first error, or OK, when the parts and the Join itself are gone.
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
  // `what` completes "waits for ...": a text that is never freed.
  Wait(Scheduler& scheduler, const char* what) : ended_now_(scheduler, what) {}

  // To be handed to the one operation. REQUIRES Get to be called before the Wait is destroyed.
  Done done() {
    return Done([this](Status status) {
      MutexLock lock(mu_);
      status_ = std::move(status);
      ended_.store(true, std::memory_order_release);
      ended_now_.NotifyAll();
    });
  }
  // Blocks until it has ended. The operation has a deadline of its own.
  Status Get() {
    MutexLock lock(mu_);
    ended_now_.Wait(mu_, [this] { return ended_.load(std::memory_order_relaxed); });
    return std::move(status_);
  }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  Mutex mu_;
  Condition ended_now_;
  std::atomic<bool> ended_{false};  // changed under mu_
  Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
