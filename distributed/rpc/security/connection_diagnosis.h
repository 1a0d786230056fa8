// SPDX-License-Identifier: Apache-2.0
//
// DiagnoseConnection: why gRPC cannot connect to a task although something listens there. gRPC says
// "Socket closed" or "certificate verify failed"; people need to know which setting of which side
// does not fit.
#pragma once

#include <cstdint>
#include <string>

#include "distributed/rpc/security/credentials.h"

namespace penstock {

// Connects to "host:port" as `credentials` say and returns what is wrong and what to do about it in
// one line, without the address: "the task speaks TLS, this process does not: ...". "" where
// nothing is wrong with TLS, or nothing listens, or no answer comes in time. Blocks, at most for
// about `timeout_ms`, and as long as the host's name takes to resolve.
std::string DiagnoseConnection(const std::string& address, const Credentials& credentials,
                               int timeout_ms = 2'000);

}  // namespace penstock
