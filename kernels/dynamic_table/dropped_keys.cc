// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/dropped_keys.h"

#include <algorithm>

namespace penstock {

void DroppedKeys::Add(int64_t key, int64_t rows) {
  constexpr int64_t kEntriesMin = 4096;
  const int32_t now = epochs_.now;
  if (now == 0) return;
  const auto limit = static_cast<size_t>(std::max(kEntriesMin, rows));
  if (entries_.size() >= limit) {
    const int32_t oldest = epochs_.oldest;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.epoch <= oldest; });
    known_after_ = std::max(known_after_, oldest);
    // If the search erased only a few keys, forgets all keys; otherwise each of the next calls
    // would search all keys again.
    if (entries_.size() > limit / 2) Forget();
  }
  entries_.push_back({key, now});
}

void DroppedKeys::Forget() {
  entries_ = {};
  known_after_ = epochs_.now;
}

}  // namespace penstock
