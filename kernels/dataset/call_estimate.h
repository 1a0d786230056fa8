// SPDX-License-Identifier: Apache-2.0
//
// CallEstimate: estimates how long one call of a function takes, and decides whether the next call
// runs on the caller's thread or on the pool. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

class CallEstimate {
 public:
  // The approximate time that it takes to pass a call to another thread and to wait for its result.
  static constexpr int64_t kQuickNanos = 20'000;
  // Shorter times count as this one, because the clock does not measure them exactly.
  static constexpr int64_t kNanosMin = 100;
  // The first kSamples calls run on the caller's thread, to measure how long a call takes. The
  // measurement ends earlier if the estimate reaches kSampleNanosMax.
  static constexpr int64_t kSamples = 8;
  static constexpr int64_t kSampleNanosMax = 1'000'000;
  // A call looks slow if its thread was interrupted. So after kFirstInterval calls on the pool, one
  // call of a function that seems slow is timed again. The interval doubles after each such call,
  // up to kLastInterval, so that functions that are slow indeed rarely run on the caller's thread.
  static constexpr int64_t kFirstInterval = 64;
  static constexpr int64_t kLastInterval = 4096;

  // Returns whether the next call runs on the caller's thread. If so, the caller times the call and
  // passes the time to Record.
  bool RunsHere() {
    if (nanos_ < (samples_ < kSamples ? kSampleNanosMax : kQuickNanos)) return true;
    if (++passed_on_ <= interval_) return false;
    passed_on_ = 0;
    interval_ = std::min(2 * interval_, kLastInterval);
    return true;
  }

  void Record(int64_t nanos) {
    nanos = std::max(nanos, kNanosMin);
    // The first call is slower than later ones, so a faster call lowers the estimate at once. A
    // slower call raises it gradually, to less than twice its value.
    const bool lowers = samples_++ == 0 || nanos < nanos_;
    nanos_ = lowers ? nanos : (7 * nanos_ + std::min(nanos, 8 * nanos_)) / 8;
    if (nanos < kQuickNanos) interval_ = kFirstInterval;
  }

 private:
  int64_t samples_ = 0;
  int64_t nanos_ = 0;      // the estimated time of a call
  int64_t passed_on_ = 0;  // the number of calls on the pool since a call was timed
  int64_t interval_ = kFirstInterval;
};

}  // namespace penstock
