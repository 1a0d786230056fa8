// SPDX-License-Identifier: Apache-2.0
//
// TestKey: for tests, the key of a tensor that ps 0 sends to worker 0.
#pragma once

#include <cstdint>
#include <string>

#include "core/runtime/rendezvous.h"

namespace penstock {

// If `iteration` is not 0, the tensor belongs to this iteration of a loop.
inline HashedKey TestKey(const std::string& tensor, uint64_t iteration = 0) {
  return HashedKey({.src_device = "/job:ps/replica:0/task:0/device:CPU:0",
                    .src_incarnation = 7,
                    .dst_device = "/job:worker/replica:0/task:0/device:CPU:0",
                    .tensor = tensor,
                    .frame = iteration == 0 ? uint64_t{0} : 5,
                    .iteration = iteration});
}

}  // namespace penstock
