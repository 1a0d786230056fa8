// SPDX-License-Identifier: Apache-2.0
//
// Cancellation: tells all operations that still wait in a step that the step has ended (an error in
// another node, the deadline, a closed session, a dead peer).
//
// One Cancellation belongs to one step; blocked operations register a callback. The first call of
// Cancel decides: every callback and every later status() gets its status. Thread-safe.
// Invariants: (1) each registered callback runs at most once; (2) Deregister returns only when the
// callback has been removed or has finished running, so that the caller may then free the objects
// that the callback captures (a callback must therefore neither deregister itself nor wait for
// another closure); (3) no lock is held while a callback runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace penstock {

class Cancellation {
 public:
  using Callback = std::function<void(const Status&)>;
  using Token = int64_t;

  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // Costs one atomic load, so that kernels may call it often.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Returns OK until cancelled.
  Status status() const ABSL_LOCKS_EXCLUDED(mu_);

  // Calls every registered callback on this thread, oldest first. `why` must not be OK. Later calls
  // do nothing, and may return before the callbacks of the first call have run.
  void Cancel(const Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  // Registers `callback` and sets `*token`, for Deregister. If this object is cancelled already,
  // returns false and registers nothing; the caller then ends with status().
  [[nodiscard]] bool Register(Callback callback, Token* token) ABSL_LOCKS_EXCLUDED(mu_);
  void Deregister(Token token) ABSL_LOCKS_EXCLUDED(mu_);

  // Resets this object to its initial state, for the next step. REQUIRES: no callback is registered
  // and no other thread uses the object.
  void Reset() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::atomic<bool> cancelled_{false};  // changed under mu_
  mutable Mutex mu_;
  // A CondVar, because a Condition needs a scheduler. In a simulation no closure waits here: only
  // a wait switches closures, and callbacks do not wait, so they end before another closure runs.
  CondVar callback_done_;
  Status status_ ABSL_GUARDED_BY(mu_);
  Token running_ ABSL_GUARDED_BY(mu_) = 0;  // the callback that is running; 0: none
  Token next_token_ ABSL_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<Token, Callback> callbacks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
