// SPDX-License-Identifier: Apache-2.0
//
// CancellableWait: lets an iterator wait for its own threads, or for calls in progress.
#pragma once

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// Blocks until `ready`, which is called with `mu` held, returns true. If the caller's step is
// cancelled first, returns that step's status. Notify `changed` when the result of `ready` may have
// changed. `ready` needs the annotation ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex).
template <class Ready>
Status CancellableWait(const IteratorContext& ctx, Mutex& mu, Condition& changed, Ready ready)
    ABSL_LOCKS_EXCLUDED(mu)
        ABSL_NO_THREAD_SAFETY_ANALYSIS {  // `ready` names `mu` by another expression
  {
    MutexLock lock(mu);
    if (ready()) return OkStatus();
  }
  Cancellation& cancellation = *ctx.cancellation;
  Cancellation::Token token = 0;
  // Locks the mutex for a moment. A waiter that has found `ready` false is then asleep already, so
  // Notify wakes it.
  const auto wake = [&mu, &changed](const Status&) {
    { MutexLock lock(mu); }
    changed.NotifyAll();
  };
  if (!cancellation.Register(wake, &token)) return cancellation.status();
  {
    MutexLock lock(mu);
    changed.Wait(
        mu, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return cancellation.cancelled() || ready(); });
  }
  cancellation.Deregister(token);
  return cancellation.cancelled() ? cancellation.status() : OkStatus();
}

}  // namespace penstock
