// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/gate_wait.h"

#include <optional>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/error_origin.h"
#include "core/base/mutex.h"

namespace penstock {
namespace {

// The wait of one step. Thread-safe. Held by the gate, and by the callbacks that may end the wait
// before the gate does.
class GateWait : public std::enable_shared_from_this<GateWait> {
 public:
  GateWait(const StepGate& gate, std::shared_ptr<Step> step, const GateServices& services,
           Done done)
      : awaited_(gate.awaited()),
        step_(std::move(step)),
        services_(services),
        done_(std::move(done)) {}

  // Reports `ran` to the gate, and makes the step's cancellation and deadline end the wait. Called
  // once. If the gate answers during Begin, the step's Done is called only at the end of Begin,
  // because after it the worker may be destroyed, and with it the gate and the timer.
  void Begin(StepGate& gate, const Status& ran, int64_t deadline_ns) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Watch(int64_t deadline_ns);
  bool answered() const ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the wait with the first answer; drops later answers.
  void Answer(const Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void StepCancelled(const Status& why);
  void End(const Status& status);

  const char* const awaited_;
  const std::shared_ptr<Step> step_;
  const GateServices services_;
  // Set by Begin; then used by the thread that ends the wait.
  std::optional<Cancellation::Token> cancellation_;
  std::optional<DeadlineTimer::Token> timer_;
  Done done_;
  mutable Mutex mu_;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;  // Begin has ended
  std::optional<Status> answer_ ABSL_GUARDED_BY(mu_);
};

void GateWait::Begin(StepGate& gate, const Status& ran, int64_t deadline_ns) {
  gate.StepEnds(step_->id(), ran,
                Done([self = shared_from_this()](const Status& status) { self->Answer(status); }));
  if (!answered()) Watch(deadline_ns);
  std::optional<Status> answer;
  {
    MutexLock lock(mu_);
    begun_ = true;
    answer = answer_;
  }
  if (answer.has_value()) End(*answer);
}

void GateWait::Watch(int64_t deadline_ns) {
  Cancellation::Token token;
  const auto cancelled = [self = shared_from_this()](const Status& why) {
    self->StepCancelled(why);
  };
  if (!step_->cancellation().Register(cancelled, &token)) {
    return StepCancelled(step_->cancellation().status());
  }
  cancellation_ = token;
  if (deadline_ns == 0) return;
  // Cancels the step on another thread. The end of the step disarms the timer, and the timer's
  // thread must not wait for itself.
  timer_ = services_.timer->Arm(deadline_ns, [step = step_, threads = services_.threads] {
    threads->Schedule([step] {
      step->Cancel(DeadlineExceeded("step ", step->id(), " did not end before its deadline"));
    });
  });
}

bool GateWait::answered() const {
  MutexLock lock(mu_);
  return answer_.has_value();
}

void GateWait::Answer(const Status& status) {
  {
    MutexLock lock(mu_);
    if (answer_.has_value()) return;
    answer_ = status;
    if (!begun_) return;
  }
  End(status);
}

// Ends the wait on another thread, because the end of the step deregisters the caller's
// cancellation, which may be running on this thread.
void GateWait::StepCancelled(const Status& why) {
  services_.threads->Schedule([self = shared_from_this(), why] {
    self->Answer(
        WithMessage(why, StrCat(why.message(), "; step ", self->step_->id(), " of ",
                                self->services_.task, " has run and waited for ", self->awaited_,
                                ": it is not known whether its changes will last")));
  });
}

// Called once, when Begin has ended and there is an answer.
void GateWait::End(const Status& status) {
  if (cancellation_) step_->cancellation().Deregister(*cancellation_);
  if (timer_) services_.timer->Disarm(*timer_);
  std::move(done_)(status);
}

}  // namespace

void AwaitGate(StepGate& gate, std::shared_ptr<Step> step, const Status& ran, int64_t deadline_ns,
               const GateServices& services, Done done) {
  std::make_shared<GateWait>(gate, std::move(step), services, std::move(done))
      ->Begin(gate, ran, deadline_ns);
}

}  // namespace penstock
