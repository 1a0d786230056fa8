// SPDX-License-Identifier: Apache-2.0
//
// PendingCall: one rank's call of a collective. It ends once, with the first result or error.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/runtime/collective.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/collective/formed_group.h"

namespace penstock::collective {

class PendingCall {
 public:
  PendingCall(Cancellation* cancellation, DeadlineTimer& timer, Collectives::Collected collected)
      : cancellation_(cancellation), timer_(timer), collected_(std::move(collected)) {}

  // Makes the step's cancellation call `cancelled`. Returns false if the step is cancelled already.
  bool Watch(Cancellation::Callback cancelled) {
    return cancellation_ == nullptr || cancellation_->Register(std::move(cancelled), &token_);
  }
  // Arms the timer, unless a timer is armed already or StopTimer was called.
  void Arm(int64_t deadline_ns, std::function<void()> expired) {
    MutexLock lock(mu_);
    if (stopped_ || timer_token_.has_value()) return;
    timer_token_ = timer_.Arm(deadline_ns, std::move(expired));
  }
  // Disarms the timer. Arm does nothing from now on.
  void StopTimer() {
    std::optional<DeadlineTimer::Token> token;
    {
      MutexLock lock(mu_);
      stopped_ = true;
      token = std::exchange(timer_token_, std::nullopt);
    }
    if (token.has_value()) timer_.Disarm(*token);
  }
  // Notes that the timer has fired; from now on StopTimer and End do not disarm it.
  void Expired() {
    MutexLock lock(mu_);
    stopped_ = true;
    timer_token_.reset();
  }
  // Marks a call that must not take part in any collective any more.
  void MarkFailed() { failed_ = true; }
  bool failed() const { return failed_; }
  // Returns the group that executes the call. The pointer is expired if no group executes the call
  // yet, or if the group was destroyed.
  std::weak_ptr<FormedGroup> group() {
    MutexLock lock(mu_);
    return group_;
  }
  void set_group(const std::shared_ptr<FormedGroup>& group) {
    MutexLock lock(mu_);
    group_ = group;
  }

  // Ends the call with `result`. Does nothing if it has ended.
  void End(StatusOr<Tensor> result) {
    if (ended_.exchange(true)) return;
    StopTimer();
    // The cancellation callback may be running, even on this thread: it then does nothing, because
    // the call has ended.
    if (cancellation_ != nullptr && !cancellation_->cancelled()) cancellation_->Deregister(token_);
    Collectives::Collected collected = std::move(collected_);
    std::move(collected)(std::move(result));
  }

 private:
  Cancellation* const cancellation_;
  DeadlineTimer& timer_;
  Cancellation::Token token_ = 0;
  std::atomic<bool> ended_{false}, failed_{false};
  Collectives::Collected collected_;
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<DeadlineTimer::Token> timer_token_ ABSL_GUARDED_BY(mu_);
  std::weak_ptr<FormedGroup> group_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collective
