// SPDX-License-Identifier: Apache-2.0
//
// StepRate: how many steps a master runs per second, from samples of their number.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/mutex.h"

namespace penstock {

class StepRate {
 public:
  // Notes the number of steps so far. The caller calls this every few seconds.
  void Sample(int64_t now_ns, uint64_t steps) {
    MutexLock lock(mu_);
    before_ = std::exchange(last_, {now_ns, steps});
  }
  // Returns the rate since the sample before the last one, or since the last one if it is the
  // first; 0 if there is no sample.
  double PerSecond(int64_t now_ns, uint64_t steps) const {
    MutexLock lock(mu_);
    const Counted& since = before_.at_ns != 0 ? before_ : last_;
    // A session that is being closed may be counted twice, or not at all, for a moment.
    if (since.at_ns == 0 || now_ns <= since.at_ns || steps < since.steps) return 0;
    return static_cast<double>(steps - since.steps) * 1e9 /
           static_cast<double>(now_ns - since.at_ns);
  }

 private:
  struct Counted {
    int64_t at_ns = 0;
    uint64_t steps = 0;
  };
  mutable Mutex mu_;
  Counted before_ ABSL_GUARDED_BY(mu_), last_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
