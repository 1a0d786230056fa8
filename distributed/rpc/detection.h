// SPDX-License-Identifier: Apache-2.0
//
// The settings with which a server finds lost tasks: heartbeats and probes of connections.
#pragma once

#include <string>

#include "core/base/status.h"
#include "distributed/rpc/server.h"

namespace penstock {

// InvalidArgument if a setting is out of its range, or contradicts another one. The error names the
// flag of `penstock server` that sets it, the value, and the values that are allowed.
Status CheckDetection(const ServerOptions& options);

// Returns a line such as "sends heartbeats every 2000 ms; ... lost after 8000 ms".
std::string DescribeDetection(const ServerOptions& options);

}  // namespace penstock
