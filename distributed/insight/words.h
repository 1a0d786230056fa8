// SPDX-License-Identifier: Apache-2.0
//
// How ages, sizes, tasks and steps are written for an operator.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// "340 ms", "12 s", "5 min", "3 h", "2 days".
std::string AgeText(int64_t ms);
// ", for 12 s"; "" if the age is not known (< 0).
std::string ForText(int64_t ms);
// "17 B", "3.4 MB".
std::string BytesText(int64_t bytes);
// "/job:ps/task:1" of "/job:ps/replica:0/task:1": the replica is always 0.
std::string ShortTask(const std::string& task);
// "step -4711", as errors write it.
std::string StepText(uint64_t step_id);

}  // namespace penstock
