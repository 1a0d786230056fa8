// SPDX-License-Identifier: Apache-2.0
//
// Reserved step ids, which no step has. Under these ids transports carry messages between tasks
// that belong to no single step: the messages of collectives, and the calls that begin and end
// steps.
#pragma once

#include <cstdint>

namespace penstock::collective {

struct ReservedSteps {
  int64_t min, max;
  bool Contains(int64_t step_id) const { return step_id >= min && step_id <= max; }
};

inline constexpr ReservedSteps kStepsOfCollectives = {-(int64_t{1} << 16), -1};
inline constexpr ReservedSteps kStepsOfCalls = {-(int64_t{1} << 17), kStepsOfCollectives.min - 1};

inline bool IsReservedStep(int64_t step_id) {
  return step_id >= kStepsOfCalls.min && step_id <= kStepsOfCollectives.max;
}

}  // namespace penstock::collective
