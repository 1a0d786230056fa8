// SPDX-License-Identifier: Apache-2.0
//
// ClientActivity: the client of one session, and when the session was last used.
//
// Thread-safe; NoteUse takes no lock. Locks: no other lock is taken while mu_ is held.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/base/env.h"
#include "core/base/mutex.h"

namespace penstock {

class ClientActivity {
 public:
  // Borrows `env`. Counts the construction as the first use.
  explicit ClientActivity(Env& env) : env_(env), last_use_ns_(env.NowNanos()) {}

  // Notes that the session is in use.
  void NoteUse() { last_use_ns_ = env_.NowNanos(); }
  // Notes a call from `client`, the address of its connection; "" for a client in this process.
  void NoteCall(const std::string& client) ABSL_LOCKS_EXCLUDED(mu_);
  // Notes a use of the session if the last caller's connection is in `connected`, or if the last
  // caller is in this process.
  void NoteConnected(const absl::flat_hash_set<std::string>& connected) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the last caller; "" before the first call.
  std::string client() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the nanoseconds since the last use.
  int64_t unused_ns() const { return env_.NowNanos() - last_use_ns_; }

 private:
  Env& env_;
  std::atomic<int64_t> last_use_ns_;
  mutable Mutex mu_;
  std::string client_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
