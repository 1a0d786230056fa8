// SPDX-License-Identifier: Apache-2.0
//
// TaskWait: asks the tasks that a new session needs for their status until all have answered.
//
// No thread waits: a timer starts rounds of questions. So any number of sessions may wait for a
// missing task. Thread-safe. Held by shared pointers: pending calls keep it alive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/done.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/worker/worker_client.h"

namespace penstock {

class TaskWait : public std::enable_shared_from_this<TaskWait> {
 public:
  struct Task {
    TaskId id;  // without an incarnation, because the session accepts any
    std::shared_ptr<WorkerClient> client;
    // The client of the other replica, if the task has two. The session uses the one that serves.
    TaskId other = {};
    std::shared_ptr<WorkerClient> other_client = nullptr;
  };
  struct Options {
    std::vector<Task> tasks;
    int64_t timeout_ms = 0;
    // Tasks that have not answered are asked again after this long.
    int64_t pause_ms = 0;
    Env* env = nullptr;
    DeadlineTimer* timer = nullptr;
  };
  // Receives the tasks' answers in the order of the tasks. DeadlineExceeded names the tasks
  // that did not answer.
  using Answered = absl::AnyInvocable<void(StatusOr<std::vector<TaskStatus>>) &&>;

  // `answered` is called once, on any thread, and must not block.
  TaskWait(Options options, Answered answered);

  // Return the tasks that are asked, and the time when the wait began, by the Env's clock.
  const std::vector<Task>& tasks() const { return options_.tasks; }
  int64_t begun_ns() const { return begun_ns_; }
  // Returns the tasks that did not answer in the last round of questions, and why; for inspection.
  std::vector<std::pair<TaskId, Status>> unanswered() const;

  // Must be called once.
  void Start() { Ask(); }
  // Ends the wait with `why`, unless it has ended. When Cancel returns, no timer is armed any more.
  // Must not be called from `answered`.
  void Cancel(const Status& why);

 private:
  void Ask();
  void AskOne(size_t task, bool other, const CallOptions& call, Done part);
  void ChooseReplicas();
  void RoundEnded();
  std::optional<Answered> TakeAnswered();
  void NoteUnanswered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status NoAnswerError() const;

  const Options options_;
  const int64_t begun_ns_;
  const int64_t deadline_ns_;

  mutable Mutex mu_;
  std::vector<std::pair<TaskId, Status>> unanswered_ ABSL_GUARDED_BY(mu_);
  std::optional<Answered> answered_ ABSL_GUARDED_BY(mu_);  // null once it was called
  std::optional<DeadlineTimer::Token> next_round_ ABSL_GUARDED_BY(mu_);
  // Each call of a round writes its own element; the elements are read between rounds.
  std::vector<StatusOr<TaskStatus>> answers_;
  std::vector<StatusOr<TaskStatus>> other_answers_;  // the answers of the other replicas
};

}  // namespace penstock
