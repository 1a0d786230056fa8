// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/stream_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/status.h"

namespace penstock {

AddressList ResolveAddresses(const HostPort& to, int* error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  *error = getaddrinfo(to.host.c_str(), StrCat(to.port).c_str(), &hints, &found);
  return AddressList(*error == 0 ? found : nullptr, [](addrinfo* list) {
    if (list != nullptr) freeaddrinfo(list);
  });
}

StreamSocket::StreamSocket(int family)
    : fd_(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}

StreamSocket::~StreamSocket() {
  if (fd_ >= 0) close(fd_);
}

int StreamSocket::Connect(const addrinfo& address, int timeout_ms) {
  if (fd_ < 0) return errno;
  if (connect(fd_, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!Await(POLLOUT, timeout_ms)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool StreamSocket::Await(short event, int timeout_ms) const {
  pollfd ready{.fd = fd_, .events = event, .revents = 0};
  return poll(&ready, 1, timeout_ms) > 0;
}

std::unique_ptr<StreamSocket> ConnectToAny(const addrinfo* addresses, int timeout_ms, int* error) {
  *error = EHOSTUNREACH;
  for (const addrinfo* a = addresses; a != nullptr; a = a->ai_next) {
    auto connected = std::make_unique<StreamSocket>(a->ai_family);
    *error = connected->Connect(*a, timeout_ms);
    if (*error == 0) return connected;
  }
  return nullptr;
}

bool IsSettingsFrame(const char* bytes, size_t count) {
  // A frame starts with three bytes of length and one of type; type 4 is SETTINGS.
  return count >= 4 && bytes[3] == 4;
}

}  // namespace penstock
