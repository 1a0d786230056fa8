// SPDX-License-Identifier: Apache-2.0
//
// DiagnoseConnection: finds out why gRPC cannot connect to a task although a process listens there.
// gRPC only says "Socket closed" or "certificate verify failed"; the text returned here says which
// setting of which side is wrong.
#pragma once

#include <cstdint>
#include <string>

#include "distributed/security/credentials.h"

namespace penstock {

// Connects to "host:port" with `credentials`, and returns in one line what is wrong and what to do
// about it, without the address: "the task speaks TLS, this process does not: ...". Returns "" if
// the connection works, nothing listens, or no answer comes in time. Blocks for about `timeout_ms`
// and as long as the host's name takes to resolve.
std::string DiagnoseConnection(const std::string& address, const Credentials& credentials,
                               int timeout_ms = 2'000);

}  // namespace penstock
