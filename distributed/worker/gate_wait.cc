// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/gate_wait.h"

#include <optional>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/error_origin.h"
#include "core/base/mutex.h"

namespace penstock {
namespace {

// Thread-safe. Held by the gate, and by what may end the wait before the gate does.
class GateWait : public std::enable_shared_from_this<GateWait> {
 public:
  GateWait(const StepGate& gate, std::shared_ptr<Step> step, const GateServices& services,
           Done done)
      : awaited_(gate.awaited()), step_(std::move(step)), services_(services) {
    MutexLock lock(mu_);
    done_.emplace(std::move(done));
  }

  // Has the step's cancellation and its deadline end the wait, unless it has ended.
  void Watch(int64_t deadline_ns) ABSL_LOCKS_EXCLUDED(mu_);
  void Answer(const Status& status) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Registrations, to be given back when the wait has ended.
  struct Watches {
    std::optional<Cancellation::Token> cancellation;
    std::optional<DeadlineTimer::Token> timer;
  };
  void StepCancelled(const Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<Done> Take(Watches* watches) ABSL_LOCKS_EXCLUDED(mu_);
  void Release(const Watches& watches);

  const char* const awaited_;
  const std::shared_ptr<Step> step_;
  const GateServices services_;
  Mutex mu_;
  std::optional<Done> done_ ABSL_GUARDED_BY(mu_);  // until the wait has ended
  Watches watches_ ABSL_GUARDED_BY(mu_);
};

void GateWait::Watch(int64_t deadline_ns) {
  {
    MutexLock lock(mu_);
    if (!done_.has_value()) return;  // the gate has answered at once
  }
  Watches watches;
  Cancellation::Token token;
  const auto cancelled = [self = shared_from_this()](const Status& why) {
    self->StepCancelled(why);
  };
  if (!step_->cancellation().Register(cancelled, &token)) {
    return StepCancelled(step_->cancellation().status());
  }
  watches.cancellation = token;
  if (deadline_ns != 0) {
    // The timer's thread must not end the step: that would have it wait for itself.
    watches.timer = services_.timer->Arm(deadline_ns, [step = step_, threads = services_.threads] {
      threads->Schedule([step] {
        step->Cancel(DeadlineExceeded("step ", step->id(), " did not end before its deadline"));
      });
    });
  }
  {
    MutexLock lock(mu_);
    if (done_.has_value()) {
      watches_ = watches;
      return;
    }
  }
  Release(watches);  // it has ended meanwhile
}

void GateWait::Answer(const Status& status) {
  Watches watches;
  std::optional<Done> done = Take(&watches);
  if (!done.has_value()) return;
  Release(watches);
  (*std::move(done))(status);
}

// Ends the wait on another thread: this one may be that of a caller whose cancellation the end of
// the step deregisters.
void GateWait::StepCancelled(const Status& why) {
  services_.threads->Schedule([self = shared_from_this(), why] {
    self->Answer(
        WithMessage(why, StrCat(why.message(), "; step ", self->step_->id(), " of ",
                                self->services_.task, " has run and waited for ", self->awaited_,
                                ": it is not known whether its changes will last")));
  });
}

std::optional<Done> GateWait::Take(Watches* watches) {
  MutexLock lock(mu_);
  std::optional<Done> done;
  if (!done_.has_value()) return done;
  done.emplace(*std::move(done_));
  done_.reset();
  *watches = std::exchange(watches_, {});
  return done;
}

void GateWait::Release(const Watches& watches) {
  if (watches.cancellation) step_->cancellation().Deregister(*watches.cancellation);
  if (watches.timer) services_.timer->Disarm(*watches.timer);
}

}  // namespace

void AwaitGate(StepGate& gate, std::shared_ptr<Step> step, const Status& ran, int64_t deadline_ns,
               const GateServices& services, Done done) {
  const int64_t id = step->id();
  const auto wait = std::make_shared<GateWait>(gate, std::move(step), services, std::move(done));
  gate.StepEnds(id, ran, Done([wait](const Status& status) { wait->Answer(status); }));
  wait->Watch(deadline_ns);
}

}  // namespace penstock
