// SPDX-License-Identifier: Apache-2.0
//
// Whether all tasks of a running cluster see one directory as the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/doctor/finding.h"

namespace penstock {

// Writes a file to `directory` here, and has each of `tasks` ("/job:ps/task:0") read it, in a
// session with the task at `target` ("grpc://host:port"). The file is removed.
Findings CheckSharedDirectory(const std::string& directory, const std::string& target,
                              const std::vector<std::string>& tasks, int64_t timeout_ms);

}  // namespace penstock
