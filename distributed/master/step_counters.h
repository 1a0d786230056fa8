// SPDX-License-Identifier: Apache-2.0
//
// StepCounters: counts how the steps of a master's sessions have ended, for monitoring.
// Thread-safe; counting takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "core/base/status.h"

namespace penstock {

class StepCounters {
 public:
  // Upper bounds of the latency histogram's buckets, in seconds; one more bucket has no
  // upper bound.
  static constexpr std::array<double, 13> kBounds = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1,
                                                     0.3,  1,    3,    10,   30,   100};

  // Counts a step that has ended. `nanos`: how long the step took.
  void Ended(const Status& status, int64_t nanos) {
    const double seconds = static_cast<double>(nanos) * 1e-9;
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    nanos_.fetch_add(nanos, std::memory_order_relaxed);
    if (!status.ok()) Failed(status);
  }
  // Counts a failed step whose time was not measured.
  void Failed(const Status& status) {
    const int code = static_cast<int>(status.code());
    if (code < kCodes) failed_[code].fetch_add(1, std::memory_order_relaxed);
  }
  // Adds the steps of a session that is closed.
  void AddBegun(uint64_t steps) { begun_.fetch_add(steps, std::memory_order_relaxed); }

  uint64_t begun_in_closed_sessions() const { return begun_.load(std::memory_order_relaxed); }
  // Returns the failed steps by code, without zeros.
  std::map<StatusCode, uint64_t> failed() const {
    std::map<StatusCode, uint64_t> failed;
    for (int code = 0; code < kCodes; ++code) {
      const uint64_t count = failed_[code].load(std::memory_order_relaxed);
      if (count > 0) failed[static_cast<StatusCode>(code)] = count;
    }
    return failed;
  }
  // Returns the counts per bucket, not cumulative.
  std::vector<uint64_t> buckets() const {
    std::vector<uint64_t> buckets;
    for (const auto& bucket : buckets_) buckets.push_back(bucket.load(std::memory_order_relaxed));
    return buckets;
  }
  // Returns the time that all steps together took.
  double seconds() const { return static_cast<double>(nanos_.load()) * 1e-9; }

 private:
  static constexpr int kCodes = 17;  // number of codes in absl::StatusCode

  std::array<std::atomic<uint64_t>, kBounds.size() + 1> buckets_{};
  std::array<std::atomic<uint64_t>, kCodes> failed_{};
  std::atomic<uint64_t> begun_{0};
  std::atomic<int64_t> nanos_{0};
};

}  // namespace penstock
