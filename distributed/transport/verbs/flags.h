// SPDX-License-Identifier: Apache-2.0
//
// The flags of the RDMA transport, for programs that run a task.
#pragma once

#include <CLI/App.hpp>

namespace penstock {

// Adds --verbs_device and the other flags. Each sets the environment variable that the
// transport reads, so flags must be parsed before other threads start.
void AddVerbsFlags(CLI::App& app);

}  // namespace penstock
