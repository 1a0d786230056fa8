// SPDX-License-Identifier: Apache-2.0
//
// Spinning: a thread polls for a short time before it blocks, because waking a blocked thread costs
// 50 to 100 us on virtual machines. Only schedulers of real threads use this file; other code calls
// Scheduler::Spin, which tests only once in a simulation.
#pragma once

#include <chrono>

namespace penstock {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls `ready`. Returns true as soon as `ready` returns true, false after `limit`.
template <class Ready>
bool SpinUntil(Ready ready, std::chrono::nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

// Learns at which places of the code spinning is useless, because the awaited change comes from
// another task, or from a core that other threads use. After kFailuresMax failures in a row, a
// thread spins there only every kTryEach-th time. Use one object per thread and place
// (thread_local).
class SpinHabit {
 public:
  template <class Ready>
  bool Until(Ready ready, std::chrono::nanoseconds limit) {
    const bool try_it = failures_in_row_ < kFailuresMax || failures_in_row_ % kTryEach == 0;
    if (try_it ? SpinUntil(ready, limit) : ready()) {
      if (try_it) failures_in_row_ = 0;
      return true;
    }
    ++failures_in_row_;
    return false;
  }

 private:
  static constexpr unsigned kFailuresMax = 4, kTryEach = 16;
  unsigned failures_in_row_ = 0;  // how often in succession spinning was useless
};

}  // namespace penstock
