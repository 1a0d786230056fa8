// SPDX-License-Identifier: Apache-2.0
//
// StepTable: the steps that run in one task, by id; where transports find them.
//
// A consumer's subscription may come before the producer's part of the step has begun: it is
// parked, but not many per consumer and not for long. Whatever comes for a step that has ended is
// refused or dropped. Thread-safe. No lock is held while a step or a sink is called.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/worker/step.h"

namespace penstock {

class StepTable final : public TaskSteps {
 public:
  // Limits of subscriptions for steps that have not begun here.
  static constexpr int64_t kParkedPerConsumerMax = 10'000;
  static constexpr int64_t kParkedNanosMax = 60'000'000'000;

  // `task`: the task whose steps these are.
  StepTable(TaskName task, Env& env, DeadlineTimer& timer);
  ~StepTable();

  // The task's part in collectives: steps that begin from now on use it, and it gets what comes for
  // reserved step ids. Borrowed. Before the transport serves.
  void set_exchange(collective::Exchange* exchange) { exchange_ = exchange; }

  // AlreadyExists where the step runs here, Aborted where it has ended or was aborted before it
  // could begin.
  StatusOr<std::shared_ptr<Step>> Begin(int64_t step_id, const std::string& session);
  // Forgets the step, but that it was.
  void End(int64_t step_id);

  // Cancels a step; one that has not begun will not.
  void Abort(int64_t step_id, const Status& why);
  void AbortSession(const std::string& session, const Status& why);
  void AbortAll(const Status& why);

  // TaskSteps. Tensors are received into the CPU's memory. A consumer whose name is not that of a
  // task is refused.
  void Subscribe(const std::string& consumer, int64_t step_id,
                 std::shared_ptr<TensorSink> sink) override;
  void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) override;
  void Fail(int64_t step_id, const Status& why) override;

  struct Counts {
    int64_t running = 0;
    int64_t parked = 0;
    int64_t last_end_ns = 0;  // when the last step ended, by the Env's clock; 0: none has
  };
  Counts counts() const;
  // The error of a step that has lost a task: `task_lost` with the step, and what it waited for
  // here; or what the step has failed with already, if it has.
  Status Explain(int64_t step_id, const Status& task_lost) const;
  std::vector<int64_t> running() const;
  std::vector<std::shared_ptr<Step>> steps() const;
  // How much the steps have sent to other tasks, by consumer. What a step that was aborted had sent
  // is not counted.
  std::map<TaskName, Sent> SentTo() const;

 private:
  static constexpr size_t kEndedRemembered = 4096;

  struct Parked {
    int64_t step_id;
    TaskName consumer;
    std::shared_ptr<TensorSink> sink;
    int64_t since_ns;
  };
  std::shared_ptr<Step> Find(int64_t step_id) const;
  void RememberEnded(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CancelAll(const std::vector<std::shared_ptr<Step>>& steps, const Status& why);
  std::vector<Parked> TakeParked(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Expire();
  void ArmExpiry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Returns the receiver of tensors for a reserved step id, or null if `step_id` is not reserved.
  TaskSteps* Reserved(int64_t step_id) const;

  const TaskName task_;
  Env& env_;
  DeadlineTimer& timer_;
  collective::Exchange* exchange_ = nullptr;

  mutable Mutex mu_;  // locked before the timer's
  std::map<int64_t, std::shared_ptr<Step>> steps_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<int64_t> ended_ ABSL_GUARDED_BY(mu_);  // the last so many
  std::deque<int64_t> ended_order_ ABSL_GUARDED_BY(mu_);
  int64_t last_end_ns_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<TaskName, Sent> sent_ ABSL_GUARDED_BY(mu_);  // by steps that have ended
  std::deque<Parked> parked_ ABSL_GUARDED_BY(mu_);      // oldest first
  absl::flat_hash_map<TaskName, int64_t> parked_per_consumer_ ABSL_GUARDED_BY(mu_);
  bool expiry_armed_ ABSL_GUARDED_BY(mu_) = false;                   // while something is parked
  std::optional<DeadlineTimer::Token> expiry_ ABSL_GUARDED_BY(mu_);  // the last one
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock
