// SPDX-License-Identifier: Apache-2.0
//
// Cancellation: how the end of a step (error elsewhere, deadline, closed session, dead peer)
// reaches whatever is still waiting in it.
//
// One Cancellation belongs to one step; blocked operations register a callback. The first Cancel
// wins: its status is what every callback and later `status()` sees. Thread-safe.
// Invariants: (1) each registered callback runs at most once; (2) Deregister returns only when the
// callback has been removed or has finished running, so that what it captures may be freed
// afterwards (a callback must therefore not deregister itself); (3) no lock is held while a
// callback runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "core/base/status.h"

namespace penstock {

class Cancellation {
 public:
  using Callback = std::function<void(const Status&)>;
  using Token = int64_t;

  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // One load, for the hot path.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // OK until cancelled.
  Status status() const;

  // Calls every registered callback on this thread, oldest first. `why` must not be OK. Later calls
  // do nothing, and may return before the first one's callbacks have run.
  void Cancel(const Status& why);

  // Returns false, registering nothing, when already cancelled: the caller then ends with status().
  [[nodiscard]] bool Register(Callback callback, Token* token);
  void Deregister(Token token);

  // Makes it new for the next step. REQUIRES: nothing registered, nobody else using it.
  void Reset();

 private:
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mu_;
  std::condition_variable callback_done_;
  Status status_;
  Token running_ = 0;  // the callback now being called; 0: none
  Token next_token_ = 1;
  absl::flat_hash_map<Token, Callback> callbacks_;
};

}  // namespace penstock
