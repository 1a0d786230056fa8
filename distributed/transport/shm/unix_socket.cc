// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr int kSocketKind = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 1024;
constexpr size_t kMessageBytesMax = 4096;

Status Failed(const char* what) {
  return FailedPrecondition("unix socket: ", what, ": ", std::strerror(errno));
}

struct Address {
  explicit Address(const std::string& name) {
    raw.sun_family = AF_UNIX;
    // A leading zero byte makes the name abstract.
    const size_t count = std::min(name.size(), sizeof(raw.sun_path) - 1);
    std::memcpy(raw.sun_path + 1, name.data(), count);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }

  sockaddr_un raw = {};
  socklen_t bytes = 0;
};

}  // namespace

StatusOr<UniqueFd> ListenAbstract(const std::string& name) {
  UniqueFd fd(socket(AF_UNIX, kSocketKind, 0));
  if (!fd.valid()) return Failed("socket");
  const Address address(name);
  if (bind(fd.get(), address.get(), address.bytes) != 0) return Failed("bind");
  if (listen(fd.get(), kBacklog) != 0) return Failed("listen");
  return fd;
}

StatusOr<UniqueFd> ConnectAbstract(const std::string& name) {
  UniqueFd fd(socket(AF_UNIX, kSocketKind, 0));
  if (!fd.valid()) return Failed("socket");
  const Address address(name);
  if (connect(fd.get(), address.get(), address.bytes) == 0) return fd;
  if (errno != ECONNREFUSED && errno != EAGAIN) return Failed("connect");
  return Unavailable("unix socket: connect: ", std::strerror(errno));
}

UniqueFd AcceptConnection(int listener) {
  return UniqueFd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

StatusOr<uid_t> PeerUser(int socket) {
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return Failed("SO_PEERCRED");
  return peer.uid;
}

Status SendMessage(int socket, string_view bytes, int fd) {
  iovec data = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  if (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return OkStatus();
  return Unavailable("unix socket: ", std::strerror(errno));
}

StatusOr<std::optional<SocketMessage>> ReceiveMessage(int socket) {
  char bytes[kMessageBytesMax];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec data = {bytes, sizeof(bytes)};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<SocketMessage>();
  if (count < 0) return Unavailable("its process has ended: ", std::strerror(errno));
  SocketMessage received{std::string(bytes, static_cast<size_t>(count)), UniqueFd()};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
    received.fd = UniqueFd(fd);
  }
  if (count == 0) return Unavailable("its process has ended");
  // If there was no room for descriptors, the system has closed them.
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return DataLoss("a message of more than ", kMessageBytesMax, " bytes on a unix socket");
  }
  return std::optional<SocketMessage>(std::move(received));
}

}  // namespace penstock
