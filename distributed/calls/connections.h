// SPDX-License-Identifier: Apache-2.0
//
// Lists the clients that have a connection to the gRPC servers of this process.
//
// gRPC has no callback for the end of a connection, but it keeps a list of open ones (channelz).
// Keepalive (channel.h) removes a peer that has vanished from that list.
#pragma once

#include <string>

#include "absl/container/flat_hash_set.h"

namespace penstock {

// Returns the clients' addresses, in the form of ServerContext::peer(): "ipv4:127.0.0.1:41764".
// Takes microseconds per connection.
absl::flat_hash_set<std::string> ConnectedClients();

}  // namespace penstock
