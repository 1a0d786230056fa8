// SPDX-License-Identifier: Apache-2.0
//
// LogLimiter: keeps repeated lines from flooding a log (LogLine::limited). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace penstock {

class LogLimiter {
 public:
  static constexpr int64_t kBurst = 10;
  static constexpr int64_t kPauseNanos = 10'000'000'000;
  static constexpr size_t kKeysMax = 1'000;

  // Returns nullopt if a line of `key` at `now_ns` (monotonic) must be left out; else the number of
  // lines of that key that were left out since the last written one.
  std::optional<int64_t> Admit(const std::string& key, int64_t now_ns);

 private:
  struct LoggedKey {
    int64_t allowed = kBurst;  // lines that may be written without a pause
    int64_t since_ns = 0;      // the time at which `allowed` was last raised
    int64_t left_out = 0;
  };
  void DropIdleKeys(int64_t now_ns);

  std::map<std::string, LoggedKey> seen_;
};

}  // namespace penstock
