// SPDX-License-Identifier: Apache-2.0
//
// Guarded: calls what is not supposed to throw but may: a standard container does when memory runs
// out, and one graph must not take the process with it.
#pragma once

#include <exception>
#include <new>

#include "core/base/status.h"

namespace penstock {

// What fn() returns, a Status; ResourceExhausted or Internal where it throws.
template <class Fn>
Status Guarded(Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory");
  } catch (const std::exception& e) {
    return Internal("an exception: ", e.what());
  }
}

}  // namespace penstock
