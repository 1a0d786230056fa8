// SPDX-License-Identifier: Apache-2.0
//
// MemberWatch: ends this worker's wait for the other members of an elastic group if the client of
// the next member is gone although its task answers: nothing else would end that wait. Each member
// watches the next one, so a lost client is noticed as long as any member is left.
//
// Start, Stop and the functions of waits are called by the training's thread. The functions in
// Options and `leave` are called by a thread of the object.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "client/allreduce/periodic.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"

namespace penstock::client {

class MemberWatch {
 public:
  struct Options {
    // How long this worker waits before it asks for the next member's client; more than 0.
    double patience_seconds = 10;
    // Returns whether a worker's task answers that its client is gone.
    std::function<bool(int worker)> client_is_gone;
    Env* env = &Env::Real();
    Scheduler* scheduler = &Scheduler::Real();  // must use the clock of `env`
  };
  explicit MemberWatch(Options options) : options_(std::move(options)) {}

  // Begins to watch worker `next`. `leave` ends the collectives in which this worker waits; it is
  // called again if the wait goes on.
  void Start(int next, std::function<void()> leave);
  // Ends the watch; from then on gone() is -1. Waits for a call under way.
  void Stop();

  // Note that this worker waits for the other members from now on, and that it waits no longer.
  void BeginWait() { waits_since_ns_ = options_.env->NowNanos(); }
  void EndWait() { waits_since_ns_ = 0; }

  // Returns the watched worker if its client is known to be gone, else -1.
  int gone() const { return gone_; }

 private:
  void Watch(int next, const std::function<void()>& leave);
  bool WaitsTooLong() const;

  const Options options_;
  std::atomic<int64_t> waits_since_ns_{0};  // 0: it does not wait
  std::atomic<int> gone_{-1};
  std::unique_ptr<Periodic> watching_;
};

}  // namespace penstock::client
