// SPDX-License-Identifier: Apache-2.0
//
// Step ids reserved for collectives. No step has such an id; transports carry the messages
// of collectives under them, because these messages belong to no single step.
#pragma once

#include <cstdint>

namespace penstock::collective {

inline constexpr int64_t kReservedStepsMin = -(int64_t{1} << 16), kReservedStepsMax = -1;

inline bool IsReservedStep(int64_t step_id) {
  return step_id >= kReservedStepsMin && step_id <= kReservedStepsMax;
}

}  // namespace penstock::collective
