// SPDX-License-Identifier: Apache-2.0
//
// MasterStep: one running step on its master. It calls RunGraph once per task; the first failure of
// any kind aborts the other parts and becomes the step's status.
//
// A step ends when all its parts have ended. After an abort, a part in another process that does
// not end within a grace period is abandoned; a part in this process is always waited for.
// Thread-safe. Held by shared pointers: its pending calls keep it alive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/done.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/master/prepared_step.h"

namespace penstock {

class MasterStep : public std::enable_shared_from_this<MasterStep> {
 public:
  static constexpr int64_t kGraceMs = 2'000;
  // Each task ends its part at the deadline and reports what the part waited for. If a task has not
  // done this kDeadlineSlackMs after the deadline, the master ends the step.
  static constexpr int64_t kDeadlineSlackMs = 250;

  // Borrowed until `done`.
  struct Args {
    int64_t id = 0;
    int64_t deadline_ns = 0;  // 0: no deadline
    absl::Span<const Tensor> feeds;
    absl::Span<Tensor> fetches;
    StepStatsCollector* stats = nullptr;
    Cancellation* cancellation = nullptr;  // the caller's; may be null
    // If not null, Start stores the Step of the master's own task here before it returns.
    std::shared_ptr<Step>* own_step = nullptr;
    // If true, Start may run nodes on this thread until the step has ended. If false, it may still
    // run the part of the master's own task here if that has taken only a few microseconds before
    // and nothing is fed.
    bool on_this_thread = false;
  };
  struct Services {
    Env* env = nullptr;
    DeadlineTimer* timer = nullptr;
    Scheduler* threads = nullptr;
  };

  MasterStep(std::shared_ptr<const PreparedStep> prepared, const Args& args,
             const Services& services);

  int64_t id() const { return args_.id; }
  int64_t begun_ns() const { return begun_ns_; }  // by the Env's clock
  const PreparedStep& prepared() const { return *prepared_; }
  // Returns the tasks whose parts have not ended.
  std::vector<TaskId> UnfinishedTasks() const;
  // Starts the step. REQUIRES: there is at least one part.
  void Start(Done done);
  // Aborts the step with `why`. Does nothing if it has failed or ended.
  void Abort(const Status& why);
  // Aborts the step if it has a part in `task`, and does not wait for that part.
  void TaskLost(const TaskId& task, const Status& why);

 private:
  bool several_tasks() const { return prepared_->parts.size() > 1; }
  void StartPart(size_t part);
  void PartEnded(size_t part, const Status& ended);
  Status WithStep(const Status& task_lost) const;
  void AbortParts(const Status& why);
  void AbandonParts();
  void ArmTimer(int64_t at_ns, void (MasterStep::*then)());
  void DeadlinePassed();
  void End();

  const std::shared_ptr<const PreparedStep> prepared_;
  const Args args_;
  const Services services_;
  const int64_t begun_ns_;

  mutable Mutex mu_;  // locked before the mutex of the timer
  Status first_error_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> ended_ ABSL_GUARDED_BY(mu_);  // by part
  size_t left_ ABSL_GUARDED_BY(mu_);
  std::vector<DeadlineTimer::Token> timers_ ABSL_GUARDED_BY(mu_);
  std::optional<Done> done_ ABSL_GUARDED_BY(mu_);
  // Written by Start before any part begins.
  Cancellation::Token cancellation_token_ = 0;
  bool cancellation_registered_ = false;
};

}  // namespace penstock
