// SPDX-License-Identifier: Apache-2.0
//
// Eventually: a test's wait for what other threads or processes do on the real clock.
//
//   EXPECT_TRUE(Eventually([&] { return end.taken() == 2; }));
#pragma once

#include "core/base/env.h"

namespace penstock {

// Polls `holds` every 10 ms until it returns true. Returns false if it has not within half a
// minute.
template <class Holds>
[[nodiscard]] bool Eventually(Holds holds) {
  for (int i = 0; i < 3'000; ++i) {
    if (holds()) return true;
    Env::Real().SleepForNanos(10'000'000);
  }
  return holds();
}

}  // namespace penstock
