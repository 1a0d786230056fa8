// SPDX-License-Identifier: Apache-2.0
//
// ShutdownTasks: tells the workers that only serve to end, once the chief has trained.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/base/status.h"

namespace penstock::examples {

struct ShutdownTimes {
  int64_t call_ms = 5'000;  // how long a task may take to answer
  // How long unanswered calls are repeated. A worker that was killed at the end of the training may
  // be starting again; nobody else would ever tell it to end.
  int64_t retry_ns = 15'000'000'000;
  int64_t pause_ns = 200'000'000;  // between two rounds of calls
};

// Tells the tasks at `addresses` ("host:port") to end. Calls each one at least once. Returns the
// last error of each task that could not be told, by address.
std::map<std::string, Status> ShutdownTasks(const std::set<std::string>& addresses,
                                            const ShutdownTimes& times = {});

}  // namespace penstock::examples
