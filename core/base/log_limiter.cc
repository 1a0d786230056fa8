// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_limiter.h"

#include <algorithm>
#include <utility>

namespace penstock {

std::optional<int64_t> LogLimiter::Admit(const std::string& key, int64_t now_ns) {
  if (seen_.size() >= kKeysMax && !seen_.contains(key)) DropIdleKeys(now_ns);
  LoggedKey& seen = seen_.try_emplace(key, LoggedKey{.since_ns = now_ns}).first->second;
  const int64_t pauses = (now_ns - seen.since_ns) / kPauseNanos;
  seen.allowed = std::min(kBurst, seen.allowed + pauses);
  // A full allowance does not grow as time passes.
  seen.since_ns = seen.allowed == kBurst ? now_ns : seen.since_ns + pauses * kPauseNanos;
  if (seen.allowed == 0) {
    ++seen.left_out;
    return std::nullopt;
  }
  --seen.allowed;
  return std::exchange(seen.left_out, 0);
}

// Drops the keys whose allowance has grown back to its maximum since their last line. If the table
// is still full, drops all keys.
void LogLimiter::DropIdleKeys(int64_t now_ns) {
  std::erase_if(seen_, [now_ns](const auto& entry) {
    return now_ns - entry.second.since_ns >= kBurst * kPauseNanos;
  });
  if (seen_.size() >= kKeysMax) seen_.clear();
}

}  // namespace penstock
