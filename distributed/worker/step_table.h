// SPDX-License-Identifier: Apache-2.0
//
// StepTable: the steps that run in one task, by id. Transports find them here.
//
// A consumer's subscription may come before the producer's part of the step has begun: then it is
// parked, within limits of number and time. Subscriptions to a step that has ended, and tensors for
// it, are dropped. Thread-safe. No lock is held while a step or a sink is called.
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
  // Limits of the parked subscriptions.
  static constexpr int64_t kParkedPerConsumerMax = 10'000;
  static constexpr int64_t kParkedNanosMax = 60'000'000'000;

  // `task`: the task in which these steps run.
  StepTable(TaskName task, Env& env, DeadlineTimer& timer);
  ~StepTable();

  // Sets the receiver of subscriptions and tensors for collective::kStepsOfCalls. Borrowed. Must be
  // called before the transport serves.
  void set_calls(TaskSteps* calls) { calls_ = calls; }
  // Sets the object that runs this task's collectives: steps that begin from now on use it, and it
  // receives subscriptions and tensors for reserved step ids. Borrowed. Must be called before the
  // transport serves.
  void set_exchange(collective::Exchange* exchange) { exchange_ = exchange; }

  // Begins a step, and gives it the subscriptions that are parked for it. AlreadyExists if the step
  // runs here, Aborted if it has ended or was aborted before it could begin.
  StatusOr<std::shared_ptr<Step>> Begin(int64_t step_id, const std::string& session);
  // Removes the step, but remembers its id.
  void End(int64_t step_id);

  // Cancels a step. If it has not begun, it cannot begin any more.
  void Abort(int64_t step_id, const Status& why);
  // Cancel the steps of a session, or all steps, that run now.
  void AbortSession(const std::string& session, const Status& why);
  void AbortAll(const Status& why);

  // Implement TaskSteps. Tensors are received into CPU memory. A consumer whose name is not the
  // name of a task is refused.
  void Subscribe(const std::string& consumer, int64_t step_id,
                 std::shared_ptr<TensorSink> sink) override;
  void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) override;
  void Fail(int64_t step_id, const Status& why) override;

  struct Counts {
    int64_t running = 0;
    int64_t parked = 0;
    int64_t last_end_ns = 0;  // when the last step ended, by the Env's clock; 0: none has ended
  };
  Counts counts() const;
  // Returns the error of a step that has lost a task. If the step has failed already, the error is
  // its own failure; else it is `task_lost`, with the name of the step and what the step waited for
  // here.
  Status Explain(int64_t step_id, const Status& task_lost) const;
  std::vector<int64_t> running() const;
  std::vector<std::shared_ptr<Step>> steps() const;
  // Returns how much the steps have sent to other tasks, by consumer. Does not count aborted steps.
  std::map<TaskName, SentCounts> SentTo() const;

 private:
  static constexpr size_t kEndedRemembered = 4096;

  struct ParkedSubscription {
    int64_t step_id;
    TaskName consumer;
    std::shared_ptr<TensorSink> sink;
    int64_t since_ns;
  };
  std::shared_ptr<Step> Find(int64_t step_id) const;
  void RememberEnded(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CancelAll(const std::vector<std::shared_ptr<Step>>& steps, const Status& why);
  std::vector<ParkedSubscription> TakeParked(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Expire();
  void ArmExpiry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Returns the receiver of tensors for a reserved step id; null if `step_id` is not reserved, or
  // has no receiver here.
  TaskSteps* ReceiverOf(int64_t step_id) const;

  const TaskName task_;
  Env& env_;
  DeadlineTimer& timer_;
  collective::Exchange* exchange_ = nullptr;
  TaskSteps* calls_ = nullptr;

  mutable Mutex mu_;  // locked before the mutex of the timer
  std::map<int64_t, std::shared_ptr<Step>> steps_ ABSL_GUARDED_BY(mu_);
  // Ids of the steps that have ended most recently.
  absl::flat_hash_set<int64_t> ended_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> ended_order_ ABSL_GUARDED_BY(mu_);
  int64_t last_end_ns_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<TaskName, SentCounts> sent_ ABSL_GUARDED_BY(mu_);  // sent by steps that have ended
  std::deque<ParkedSubscription> parked_
      ABSL_GUARDED_BY(mu_);  // parked subscriptions, oldest first
  absl::flat_hash_map<TaskName, int64_t> parked_per_consumer_ ABSL_GUARDED_BY(mu_);
  // The timer is armed while subscriptions are parked.
  bool expiry_armed_ ABSL_GUARDED_BY(mu_) = false;
  // The timer that was armed last.
  std::optional<DeadlineTimer::Token> expiry_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock
