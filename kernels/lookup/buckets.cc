// SPDX-License-Identifier: Apache-2.0
#include "kernels/lookup/buckets.h"

#include <algorithm>

namespace penstock {

void Buckets::Reset(int64_t count) {
  count_ = count;
  row_of_.clear();
  removed_.clear();
}

int64_t Buckets::Take(uint64_t hash, int64_t new_row) {
  const uint64_t mask = static_cast<uint64_t>(count_) - 1;
  uint64_t bucket = hash & mask;
  // Probing with steps of 1, 2, 3, ... reaches every one of 2^n buckets.
  for (uint64_t step = 1;; ++step) {
    const auto [it, free] = row_of_.try_emplace(static_cast<int64_t>(bucket), new_row);
    if (free || removed_.erase(it->second) > 0) return it->second;
    bucket = (bucket + step) & mask;
  }
}

std::vector<Buckets::TakenBucket> Buckets::All() const {
  std::vector<TakenBucket> taken;
  taken.reserve(row_of_.size());
  for (const auto& [bucket, row] : row_of_) {
    taken.push_back({bucket, row, removed_.contains(row)});
  }
  std::sort(taken.begin(), taken.end(),
            [](const TakenBucket& a, const TakenBucket& b) { return a.bucket < b.bucket; });
  return taken;
}

}  // namespace penstock
