// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/detection.h"

#include <cstdint>

namespace penstock {
namespace {

// Shorter intervals would keep cores busy, and mistake a pause of the scheduler for a dead task.
constexpr int64_t kIntervalMsMin = 50;
// A worker drops a session if its master sends no heartbeat for 60 s. With this maximum, a few
// heartbeats may get lost.
constexpr int64_t kHeartbeatMsMax = 20'000;
constexpr int64_t kKeepaliveMsMax = 600'000;
// At least two misses, so that one late answer does not end a session.
constexpr int kMissedMin = 2, kMissedMax = 100;

Status CheckRange(const char* flag, int64_t value, int64_t min, int64_t max, const char* unit) {
  if (value >= min && value <= max) return OkStatus();
  return InvalidArgument(flag, ": ", value, ", expected ", min, " to ", max, unit);
}

// Returns the longest time until a dead task counts as lost. The task may have died just after it
// answered a heartbeat, so an interval passes until the next heartbeat.
int64_t LostAfterMs(const ServerOptions& options) {
  return (options.heartbeats_missed_max + 1) * options.heartbeat_ms;
}

}  // namespace

Status CheckDetection(const ServerOptions& options) {
  RETURN_IF_ERROR(
      CheckRange("--heartbeat_ms", options.heartbeat_ms, kIntervalMsMin, kHeartbeatMsMax, " ms"));
  RETURN_IF_ERROR(CheckRange("--heartbeats_missed_max", options.heartbeats_missed_max, kMissedMin,
                             kMissedMax, ""));
  RETURN_IF_ERROR(
      CheckRange("--keepalive_ms", options.keepalive_ms, kIntervalMsMin, kKeepaliveMsMax, " ms"));
  RETURN_IF_ERROR(CheckRange("--keepalive_timeout_ms", options.keepalive_timeout_ms, kIntervalMsMin,
                             kKeepaliveMsMax, " ms"));
  if (options.keepalive_timeout_ms >= options.keepalive_ms) return OkStatus();
  return InvalidArgument("--keepalive_timeout_ms: ", options.keepalive_timeout_ms,
                         ", expected at least --keepalive_ms, which is ", options.keepalive_ms,
                         ": a peer that only pauses must not count as dead");
}

std::string DescribeDetection(const ServerOptions& options) {
  return StrCat("sends heartbeats every ", options.heartbeat_ms, " ms: a task that misses ",
                options.heartbeats_missed_max, " is lost, within ", LostAfterMs(options),
                " ms; probes a silent connection after ", options.keepalive_ms,
                " ms, and closes it after ", options.keepalive_timeout_ms, " ms without an answer");
}

}  // namespace penstock
