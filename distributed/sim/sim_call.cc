// SPDX-License-Identifier: Apache-2.0
#include "distributed/sim/sim_call.h"

#include <utility>

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

}  // namespace

std::shared_ptr<SimCall> SimCall::Start(SimNetwork& network, const SimEnd& from, const TaskId& to,
                                        std::string what, int64_t timeout_ms, Done done) {
  std::shared_ptr<SimCall> call(new SimCall(network, from, to, std::move(what), std::move(done)));
  const auto end_later = [&network, weak = std::weak_ptr(call)](const Status& why) {
    // Ends the call in another closure, because ending it disarms the timer, and the timer's own
    // callback must not do that.
    network.scheduler().Schedule([weak, why] {
      if (const auto self = weak.lock()) self->End(why);
    });
  };
  call->timeout_ = network.timer().Arm(
      network.env().NowNanos() + timeout_ms * kNanosPerMilli,
      [end_later, why = DeadlineExceeded(call->what_, ": no answer from ", to.ToString(),
                                         " within ", timeout_ms, " ms")] { end_later(why); });
  // The watch on the connection keeps the call alive while it waits for its answer.
  call->watch_ = network.Watch(from, SimEnd::Of(to), [call](const std::string& why) {
    call->End(Unavailable("lost the connection to ", call->to_.ToString(), ": ", why));
  });
  if (network.IsDead(from)) end_later(Unavailable("the caller of ", to.ToString(), " is dead"));
  return call;
}

SimCall::~SimCall() { CHECK(!done_.has_value(), what_, " was never ended"); }

void SimCall::End(const Status& status) {
  if (!done_.has_value()) return;
  const auto self = shared_from_this();
  Done done = *std::move(done_);
  done_.reset();
  network_.timer().Disarm(timeout_);
  network_.Unwatch(watch_);
  std::move(done)(status);
}

void SimCall::Ask(Serve serve, bool repeatable) {
  const auto shared = std::make_shared<const Serve>(std::move(serve));
  const auto send = [&](const std::string& what) {
    network_.Send(from_, SimEnd::Of(to_), what,
                  [self = shared_from_this(), shared] { self->Arrive(*shared); });
  };
  send(what_);
  if (repeatable && network_.DrawRepeat()) send(what_ + " again");
}

void SimCall::Arrive(const Serve& serve) {
  const bool answered = !std::exchange(arrived_, true);
  const Task* const task = network_.Find(to_.address, 0);
  const SimEnd there = task == nullptr ? SimEnd{SimEnd::Of(to_).host} : SimEnd::Of(task->self());
  Done answer([self = shared_from_this(), there, answered](const Status& status) {
    if (!answered) return;
    self->network_.Send(there, self->from_, self->what_ + (status.ok() ? " ok" : " error"),
                        [self, status] { self->End(status); });
  });
  if (task == nullptr) {
    return std::move(answer)(Unavailable("connection refused: no task is at ", to_.ToString()));
  }
  serve(std::move(answer));
}

}  // namespace penstock
