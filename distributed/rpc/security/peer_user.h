// SPDX-License-Identifier: Apache-2.0
//
// Finds the user of a program that has connected over the loopback interface. TCP does not tell it,
// but the system's list of connections does.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/status.h"

namespace penstock {

// Returns the user of the process at "peer_host:peer_port" that is connected to
// "own_host:own_port". The hosts are loopback addresses in numbers, of one family. NotFound if
// there is no such connection, or it is being closed.
StatusOr<uid_t> LoopbackPeerUser(const std::string& peer_host, int peer_port,
                                 const std::string& own_host, int own_port);

// OK if that user is this process's, or root: both could read this process's key and tokens anyway.
// Else PermissionDenied, which says whose process it is.
Status CheckLoopbackPeer(const std::string& peer_host, int peer_port, const std::string& own_host,
                         int own_port);

}  // namespace penstock
