// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace penstock {
namespace {

// 0, or the error number.
int TryToBind(const addrinfo& address) {
  const int socket_fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return errno;
  // As servers do: a port whose last connections linger is free.
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (bind(socket_fd, address.ai_addr, address.ai_addrlen) != 0 || listen(socket_fd, 1) != 0) {
    error = errno;
  }
  close(socket_fd);
  return error;
}

}  // namespace

Status CheckListenAddress(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(address.host.c_str(), StrCat(address.port).c_str(), &hints, &found);
  if (failed != 0) {
    return InvalidArgument("cannot listen on ", address.ToString(), ": ", gai_strerror(failed),
                           "; give this task an address of its own host");
  }
  int error = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    error = TryToBind(*a);
    if (error == 0) break;  // gRPC is content with one, too
  }
  freeaddrinfo(found);
  if (error == 0) return OkStatus();
  return InvalidArgument("cannot listen on ", address.ToString(), ": ", std::strerror(error),
                         error == EADDRINUSE ? "; is this task running already?"
                                             : "; give this task an address of its own host");
}

}  // namespace penstock
