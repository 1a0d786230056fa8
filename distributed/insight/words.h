// SPDX-License-Identifier: Apache-2.0
//
// Formats ages, sizes, tasks and steps for people.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/short_task.h"

namespace penstock {

// Returns "340 ms", "12 s", "5 min", "3 h" or "2 days".
std::string AgeText(int64_t ms);
// Returns ", for 12 s"; "" if the age is unknown (< 0).
std::string ForText(int64_t ms);
// Returns "17 B" or "3.4 MB".
std::string BytesText(int64_t bytes);
// Returns "/job:ps/replica:0/task:0" for "/job:ps/replica:0/task:0/device:CPU:0"; returns `device`
// unchanged if it is not the name of a device.
std::string TaskOfDevice(const std::string& device);
// Returns "step -4711", the form that errors use.
std::string StepText(uint64_t step_id);

}  // namespace penstock
