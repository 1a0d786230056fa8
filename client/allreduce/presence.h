// SPDX-License-Identifier: Apache-2.0
//
// Presence: shows the other clients of a training that this client takes part in it. That a task
// answers does not show it, because a `penstock server` outlives its client.
//
// A client announces itself by writing the time of its task's clock into a variable of the task,
// and does so again every third of `lifetime_seconds`. A client whose last announcement is older
// than lifetime_seconds, by the same clock, is absent. Presence needs no other clock, so the clocks
// of the hosts may differ.
//
// Announce and Withdraw are called by one thread at a time; a thread of the object announces.
// Locks: no call is made while mu_ is held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/session.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock::client {

class Presence {
 public:
  struct Options {
    std::string training;          // a name; must differ between trainings that share the cluster
    std::string task;              // this client's task: "/job:worker/task:0"
    double lifetime_seconds = 10;  // must be more than 0
    // Makes a session with the client's own task. The timeout of its operations bounds an
    // announcement.
    std::function<StatusOr<std::unique_ptr<SessionInterface>>()> new_session;
    // How long Announce waits.
    double announce_seconds = 5;
    Env* env = &Env::Real();
    Scheduler* scheduler = &Scheduler::Real();  // must use the clock of `env`
  };
  explicit Presence(Options options);
  // Withdraws.
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // Announces the client now, and periodically from then on. Returns the error of this
  // announcement; the periodic ones are tried again.
  Status Announce() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the announcements and removes the last one, so that the client is absent at once. A later
  // Announce begins anew.
  void Withdraw() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns whether the client of `task` is present. `session` must reach the task.
  static StatusOr<bool> IsPresent(std::unique_ptr<SessionInterface> session,
                                  const std::string& training, const std::string& task,
                                  double lifetime_seconds);

 private:
  struct Announcer;
  void AnnouncePeriodically() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  Mutex mu_;
  Condition changed_;
  bool withdrawn_ ABSL_GUARDED_BY(mu_) = false;  // the thread must end
  int64_t wanted_ ABSL_GUARDED_BY(mu_) = 0;      // the number of calls of Announce
  int64_t answered_ ABSL_GUARDED_BY(mu_) = 0;    // how many of them an announcement has answered
  Status last_ ABSL_GUARDED_BY(mu_);             // the result of the last announcement
  std::unique_ptr<Thread> thread_;               // used by the caller's thread only
};

}  // namespace penstock::client
