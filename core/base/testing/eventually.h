// SPDX-License-Identifier: Apache-2.0
//
// Eventually: lets a test wait for a condition that other threads or processes make true, on the
// real clock.
//
//   EXPECT_TRUE(Eventually([&] { return end.taken() == 2; }));
#pragma once

#include "core/base/env.h"

namespace penstock {

// Polls `holds` every 10 ms until it returns true. Returns false if it still returns false after 30
// seconds.
template <class Holds>
[[nodiscard]] bool Eventually(Holds holds) {
  for (int i = 0; i < 3'000; ++i) {
    if (holds()) return true;
    Env::Real().SleepForNanos(10'000'000);
  }
  return holds();
}

}  // namespace penstock
