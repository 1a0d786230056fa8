// SPDX-License-Identifier: Apache-2.0
//
// The flags of the RDMA transport, for programs that serve as a task.
#pragma once

#include <CLI/App.hpp>

namespace penstock {

// Adds --verbs_device and the others. Each sets its variable of the environment, where the
// transport looks for it: parse before there are threads.
void AddVerbsFlags(CLI::App& app);

}  // namespace penstock
