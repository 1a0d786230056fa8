// SPDX-License-Identifier: Apache-2.0
//
// Guarded: calls a function and turns an exception into a Status. A standard container throws if
// there is no memory, and such a failure in one graph must not end the whole process.
#pragma once

#include <exception>
#include <new>

#include "core/base/status.h"
#include "core/base/thread_pool.h"

namespace penstock {

// Returns the Status that fn() returns. If fn() throws, returns the status in a LoopEnded,
// ResourceExhausted for std::bad_alloc, and Internal for any other std::exception.
template <class Fn>
Status Guarded(Fn&& fn) {
  try {
    return fn();
  } catch (const LoopEnded& ended) {
    return ended.status();
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted("out of memory: ", e.what());
  } catch (const std::exception& e) {
    return Internal("an exception: ", e.what());
  }
}

}  // namespace penstock
