// SPDX-License-Identifier: Apache-2.0
//
// ShortTask: the name of a task as logs and reports show it.
#pragma once

#include <string>

#include "absl/strings/str_replace.h"

namespace penstock {

// Returns "/job:ps/task:1" for "/job:ps/replica:0/task:1": the replica is always 0. Shortens names
// of devices in the same way.
inline std::string ShortTask(const std::string& task) {
  return absl::StrReplaceAll(task, {{"/replica:0", ""}});
}

}  // namespace penstock
