// SPDX-License-Identifier: Apache-2.0
//
// Ops for tests of whole steps. Linking registers:
//
//   TestBlock    waits until its step is cancelled, then ends with the cancellation's status
//   TestFail     fails with `message`
//   TestSleep    its input, `millis` later, holding a thread
#pragma once

#include <cstdint>

namespace penstock {

// Returns when `count` kernels of TestBlock or more wait in this process; false if they do not
// within half a minute.
bool AwaitBlocked(int64_t count = 1);

}  // namespace penstock
