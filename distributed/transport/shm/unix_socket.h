// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets of the abstract namespace: they need no file, vanish with their process, and are
// visible only in the network namespace. They keep the boundaries of messages (SOCK_SEQPACKET).
// No function blocks.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/base/status.h"
#include "distributed/transport/shm/segment.h"

namespace penstock {

struct SocketMessage {
  std::string bytes;
  UniqueFd fd;  // the descriptor sent with the message, or invalid
};

// Returns a socket that listens at `name`. FailedPrecondition if the system refuses it.
StatusOr<UniqueFd> ListenAbstract(const std::string& name);
// Connects to the socket that listens at `name`. Unavailable if none does in this network
// namespace, or too many connections wait there; FailedPrecondition if this process may not
// connect.
StatusOr<UniqueFd> ConnectAbstract(const std::string& name);
// Accepts a connection. Returns an invalid descriptor if none waits, or the system refuses.
UniqueFd AcceptConnection(int listener);
// Returns the user of the other end's process at the time it connected or listened.
StatusOr<uid_t> PeerUser(int socket);

// Sends a message, with the descriptor `fd` unless it is -1. Unavailable if the other end has
// gone or does not read.
Status SendMessage(int socket, string_view bytes, int fd = -1);
// Returns the next message, or nothing if there is none now. Unavailable if the other end has
// gone; DataLoss if the message is longer than 4096 bytes, or its descriptors were not received.
StatusOr<std::optional<SocketMessage>> ReceiveMessage(int socket);

}  // namespace penstock
