// SPDX-License-Identifier: Apache-2.0
//
// Finds the user of a process that has connected over the loopback interface. A TCP socket does not
// tell the peer's user, but the system's list of connections does.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/status.h"

namespace penstock {

// Returns the user of the process at "peer_host:peer_port" that is connected to
// "own_host:own_port". The hosts are numeric loopback addresses of one address family.
// NotFound if there is no such connection, or it is being closed.
StatusOr<uid_t> LoopbackPeerUser(const std::string& peer_host, int peer_port,
                                 const std::string& own_host, int own_port);

// Returns OK if LoopbackPeerUser returns root or this process's user: both could read this
// process's key and tokens anyway. Else PermissionDenied, which names the user.
Status CheckLoopbackPeer(const std::string& peer_host, int peer_port, const std::string& own_host,
                         int own_port);

}  // namespace penstock
