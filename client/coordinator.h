// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: threads that end together. The first that fails, or comes to the end of its input,
// ends all; the first error is told once, by Join.
//
//   Coordinator coordinator;
//   runners.Start(session, coordinator);
//   while (!coordinator.should_stop()) {
//     const Status status = ...;  // a step
//     if (!status.ok()) coordinator.RequestStop(status);
//   }
//   RETURN_IF_ERROR(coordinator.Join());
//
// Steps that are run with its cancellation end at once when a stop is requested. Thread-safe.
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
  // Stops, and waits for the threads.
  ~Coordinator();

  // Runs `body` on a thread of its own. Its error requests a stop; if it just ends, the others go
  // on. It has to end soon after a stop is requested.
  void Start(std::function<Status()> body) ABSL_LOCKS_EXCLUDED(mu_);

  // OK, and OutOfRange (the end of the input), are a good end. Of other errors the first is kept;
  // those that come after a stop was requested are its consequences.
  void RequestStop(const Status& why = OkStatus()) ABSL_LOCKS_EXCLUDED(mu_);
  bool should_stop() const { return cancellation_.cancelled(); }
  // For RunOptions.
  Cancellation& cancellation() { return cancellation_; }

  // Waits until every thread has ended. OK, or the first error.
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
