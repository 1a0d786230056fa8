// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: runs threads that end together. The first thread that fails, or reaches the end of
// its input, ends all others. Join returns the first error.
//
//   Coordinator coordinator;
//   runners.Start(session, coordinator);
//   while (!coordinator.should_stop()) {
//     const Status status = ...;  // a step
//     if (!status.ok()) coordinator.RequestStop(status);
//   }
//   RETURN_IF_ERROR(coordinator.Join());
//
// Steps that use the coordinator's cancellation end immediately when a stop is requested.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"

namespace penstock::client {

class Coordinator {
 public:
  // Borrows the scheduler, on which the threads run.
  explicit Coordinator(Scheduler& scheduler = Scheduler::Real()) : scheduler_(scheduler) {}
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  // Requests a stop and waits for the threads.
  ~Coordinator();

  // Runs `body` on a new thread. If `body` returns an error, requests a stop; if it returns OK, the
  // other threads go on. `body` must return soon after a stop is requested.
  void Start(std::function<Status()> body) ABSL_LOCKS_EXCLUDED(mu_);

  // Asks all threads to stop. If `why` is OK or OutOfRange (the end of the input), the threads have
  // ended normally; Join returns any other `why`. Ignores the errors of later requests, because
  // they are consequences of the first.
  void RequestStop(const Status& why = OkStatus()) ABSL_LOCKS_EXCLUDED(mu_);
  bool should_stop() const { return cancellation_.cancelled(); }
  // Returns the cancellation, for RunOptions, that RequestStop cancels.
  Cancellation& cancellation() { return cancellation_; }

  // Waits until every thread has ended. Returns OK or the first error.
  Status Join() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Scheduler& scheduler_;
  Cancellation cancellation_;
  Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Status first_error_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Thread>> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::client
