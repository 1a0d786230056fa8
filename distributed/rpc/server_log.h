// SPDX-License-Identifier: Apache-2.0
//
// Writes the log lines of a server's start and end.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// The settings with which a server was started, in the form that Server's functions return.
struct ServerSettings {
  std::string task, target, listens_at, protocol;
  bool secured = false;
  std::string status_url;
  int64_t memory_limit = 0;  // bytes
  int threads = 0;
  uint64_t incarnation = 0;
  std::string detection;  // DescribeDetection's line
  std::string cluster;
};
void LogStarted(const ServerSettings& server);
void LogDraining(const std::string& task, const std::string& reason, int64_t grace_ms);

}  // namespace penstock
