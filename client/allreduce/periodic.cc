// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/periodic.h"

#include <utility>

#include "client/seconds.h"

namespace penstock::client {

Periodic::Periodic(const std::string& name, double seconds, std::function<void()> call, Env& env,
                   Scheduler& scheduler)
    : call_(std::move(call)),
      env_(env),
      ended_(scheduler, "the next call of a periodic function"),
      thread_(scheduler.StartThread(name, [this, seconds] { CallUntilEnd(seconds); })) {}

Periodic::~Periodic() {
  {
    MutexLock lock(mu_);
    ends_ = true;
    ended_.NotifyAll();
  }
  thread_ = nullptr;
}

void Periodic::CallUntilEnd(double seconds) {
  while (true) {
    {
      MutexLock lock(mu_);
      const auto ends = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ends_; };
      if (ended_.WaitUntil(mu_, env_.NowNanos() + Nanos(seconds), ends)) return;
    }
    call_();
  }
}

}  // namespace penstock::client
