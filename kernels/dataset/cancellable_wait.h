// SPDX-License-Identifier: Apache-2.0
//
// CancellableWait: how an iterator waits for its own threads, or for calls under way.
#pragma once

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// Blocks until `ready` holds, which is called with `mu` held, or the caller's step is cancelled,
// whose status it then returns. `changed` is notified when `ready` may have changed.
template <class Ready>
Status CancellableWait(const IteratorContext& ctx, Mutex& mu, Condition& changed, Ready ready)
    ABSL_LOCKS_EXCLUDED(mu) {
  {
    MutexLock lock(mu);
    if (ready()) return OkStatus();
  }
  Cancellation& cancellation = *ctx.cancellation;
  Cancellation::Token token = 0;
  // Holds the mutex for a moment, so that no waiter is between its look and its sleep.
  const auto wake = [&mu, &changed](const Status&) {
    { MutexLock lock(mu); }
    changed.NotifyAll();
  };
  if (!cancellation.Register(wake, &token)) return cancellation.status();
  {
    MutexLock lock(mu);
    changed.Wait(mu, [&] { return cancellation.cancelled() || ready(); });
  }
  cancellation.Deregister(token);
  return cancellation.cancelled() ? cancellation.status() : OkStatus();
}

}  // namespace penstock
