// SPDX-License-Identifier: Apache-2.0
//
// Checks whether all tasks of a running cluster share a directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/doctor/finding.h"

namespace penstock {

// Writes a file to `directory` on this machine, lets each of `tasks` ("/job:ps/task:0") read it, in
// a session with the task at `target` ("grpc://host:port"), and removes the file. Returns one
// finding for each task; a single finding if the session cannot be made; none if the file cannot be
// written.
Findings CheckSharedDirectory(const std::string& directory, const std::string& target,
                              const std::vector<std::string>& tasks, int64_t timeout_ms);

}  // namespace penstock
