// SPDX-License-Identifier: Apache-2.0
//
// StepTimes: keeps how long the last executions of one prepared step took. Thread-safe; adding
// takes no lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace penstock {

class StepTimes {
 public:
  static constexpr size_t kKept = 32;

  void Add(int64_t nanos) {
    const uint64_t count = count_.fetch_add(1, std::memory_order_relaxed);
    nanos_[count % kKept].store(nanos, std::memory_order_relaxed);
  }
  // Returns the number of executions ever added.
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // Returns the mean of the last kKept executions without the longest of them; 0 if there were
  // fewer than kKept.
  int64_t MeanNanos() const {
    if (count() < kKept) return 0;
    int64_t sum = 0, longest = 0;
    for (const std::atomic<int64_t>& each : nanos_) {
      const int64_t nanos = each.load(std::memory_order_relaxed);
      sum += nanos;
      longest = std::max(longest, nanos);
    }
    return (sum - longest) / static_cast<int64_t>(kKept - 1);
  }
  // Returns the median of the last kKept executions; 0 if there is none.
  int64_t MedianNanos() const {
    const size_t kept = std::min<uint64_t>(count(), kKept);
    if (kept == 0) return 0;
    std::array<int64_t, kKept> times;
    for (size_t i = 0; i < kept; ++i) times[i] = nanos_[i].load(std::memory_order_relaxed);
    std::nth_element(times.begin(), times.begin() + kept / 2, times.begin() + kept);
    return times[kept / 2];
  }

 private:
  std::atomic<uint64_t> count_{0};
  std::array<std::atomic<int64_t>, kKept> nanos_{};
};

}  // namespace penstock
