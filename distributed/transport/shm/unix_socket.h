// SPDX-License-Identifier: Apache-2.0
//
// Unix sockets of the abstract namespace: they need no file, end with their process, and do not
// leave the network namespace. Messages are kept apart (SOCK_SEQPACKET). Nothing here blocks.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/base/status.h"
#include "distributed/transport/shm/segment.h"

namespace penstock {

struct SocketMessage {
  std::string bytes;
  UniqueFd fd;  // that came with it, or invalid
};

StatusOr<UniqueFd> ListenAbstract(const std::string& name);
// Unavailable if nothing listens there in this network namespace; FailedPrecondition if this
// process may not connect.
StatusOr<UniqueFd> ConnectAbstract(const std::string& name);
// Invalid if nobody waits.
UniqueFd AcceptConnection(int listener);
// The user that the other end's process belonged to when it connected or listened.
StatusOr<uid_t> PeerUser(int socket);

// `fd` is sent along unless it is -1. Unavailable if the other end has gone or does not read.
Status SendMessage(int socket, string_view bytes, int fd = -1);
// Nothing if there is no message now. Unavailable if the other end has gone; DataLoss if the
// message is longer than 4096 bytes.
StatusOr<std::optional<SocketMessage>> ReceiveMessage(int socket);

}  // namespace penstock
