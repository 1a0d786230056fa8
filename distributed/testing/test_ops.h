// SPDX-License-Identifier: Apache-2.0
//
// Ops for tests of whole steps. Linking registers:
//
//   TestBlock    waits until its step is cancelled, then ends with the cancellation's status
//   TestFail     fails with OutOfRange and `message`
//   TestSleep    returns its input after `millis`, and blocks a thread meanwhile
#pragma once

#include <cstdint>

namespace penstock {

// Waits until at least `count` kernels of TestBlock block in this process; returns false if
// they do not within half a minute.
bool AwaitBlocked(int64_t count = 1);

}  // namespace penstock
