// SPDX-License-Identifier: Apache-2.0
//
// Step ids that no step has: under which transports carry the messages of collectives, which
// belong to no single step.
#pragma once

#include <cstdint>

namespace penstock::collective {

inline constexpr int64_t kReservedStepsMin = -(int64_t{1} << 16), kReservedStepsMax = -1;

inline bool IsReservedStep(int64_t step_id) {
  return step_id >= kReservedStepsMin && step_id <= kReservedStepsMax;
}

}  // namespace penstock::collective
