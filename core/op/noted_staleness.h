// SPDX-License-Identifier: Apache-2.0
//
// The staleness of the gradients with which asynchronous workers of this process have updated
// variables: the number of other updates between a step's read of the variables and its own update.
// Used for display only. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

struct NotedStaleness {
  // counts[i] is the number of updates with a staleness of at most kBounds[i], but more than
  // kBounds[i - 1]. The last count has no bound.
  static constexpr std::array<int64_t, 11> kBounds = {0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023};
  std::array<int64_t, kBounds.size() + 1> counts = {};
  int64_t sum = 0;  // of the staleness of all updates
};

// Records an update by a step of the device. A negative staleness counts as 0.
void NoteStaleness(const std::string& device, int64_t staleness);

// Returns what was recorded for the device since the process began.
NotedStaleness StalenessOf(const std::string& device);

}  // namespace penstock
