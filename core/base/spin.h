// SPDX-License-Identifier: Apache-2.0
//
// Spinning: what a thread does for a moment before it blocks, because being woken costs 50 to 100
// us on virtual machines. For schedulers of real threads: others spin by Scheduler::Spin, which
// does nothing in a simulation.
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

// Returns true as soon as `ready` does, false after `limit`.
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

// Learns where spinning is in vain, because what is waited for takes longer, such as another task
// or a core that others use: after some times of that it only tries now and then. One per thread
// and place (thread_local).
class SpinHabit {
 public:
  template <class Ready>
  bool Until(Ready ready, std::chrono::nanoseconds limit) {
    const bool try_it = in_vain_ < kPatience || in_vain_ % kTryEach == 0;
    if (try_it ? SpinUntil(ready, limit) : ready()) {
      if (try_it) in_vain_ = 0;
      return true;
    }
    ++in_vain_;
    return false;
  }

 private:
  static constexpr unsigned kPatience = 4, kTryEach = 16;
  unsigned in_vain_ = 0;  // times in a row
};

}  // namespace penstock
