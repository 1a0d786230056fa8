// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/client_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_posix.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "distributed/security/peer_user.h"
#include "distributed/security/stream_socket.h"

namespace penstock {
namespace {

constexpr char kFlag[] = "--insecure_client_address";
constexpr int kBacklog = 128;

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

HostPort NumbersOf(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return {.host = text, .port = ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return {.host = text, .port = ntohs(v6.sin6_port)};
}

// Returns 0 for a descriptor that is not open.
ino_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);
HostPort NameOf(int socket, NameFunction get) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (get(socket, address, &size) != 0) return {};
  return NumbersOf(*address);
}

}  // namespace

// Ends every call with the same error.
class ClientPort::Refusal final : public grpc::CallbackGenericService {
 public:
  explicit Refusal(std::string why) : why_(std::move(why)) {}

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const std::string& why) {
      Finish(grpc::Status(grpc::StatusCode::PERMISSION_DENIED, why));
    }
    void OnDone() override { delete this; }
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Reactor(why_);
  }

  const std::string why_;
};

// A server that answers refused connections: gRPC does not let a server answer connections in
// different ways, so the ClientPort hands the connections that it refuses to this one. It is made
// for the first of them, because gRPC's threads for its callback interface also poll the
// connections of other servers, which slows these down.
class ClientPort::RefusingServer {
 public:
  explicit RefusingServer(const std::string& address)
      : refusal_(StrCat(kFlag, "=", address, " serves only processes of the task's own user (",
                        geteuid(), ") and root: others come in by TLS or a token")) {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&refusal_);
    // Connections of refused processes are closed after this time, even if they never call.
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kRefusedSeconds * 1000);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 500);
    server_ = builder.BuildAndStart();
    CHECK(server_ != nullptr, "a server without ports");
  }
  ~RefusingServer() { server_->Shutdown(std::chrono::system_clock::now()); }
  grpc::Server& server() { return *server_; }

 private:
  Refusal refusal_;
  std::unique_ptr<grpc::Server> server_;
};

StatusOr<std::unique_ptr<ClientPort>> ClientPort::Listen(const std::string& address) {
  const auto parsed = HostPort::Parse(address);
  if (!parsed.ok()) {
    return InvalidArgument(kFlag, ": '", address, "' is not HOST:PORT, such as localhost:2300: ",
                           parsed.status().message());
  }
  std::unique_ptr<ClientPort> port(new ClientPort);
  RETURN_IF_ERROR(port->Bind(*parsed));
  return port;
}

Status ClientPort::Bind(const HostPort& wanted) {
  const auto wrong = [&](const std::string& what) {
    return InvalidArgument(kFlag, ": '", wanted.ToString(), "': ", what);
  };
  int error = 0;
  const AddressList addresses = ResolveAddresses(wanted, &error);
  if (addresses == nullptr) return wrong(gai_strerror(error));
  port_ = wanted.port;
  for (addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    if (!IsLoopback(*a->ai_addr)) {
      return wrong(
          "is not on the loopback interface; other hosts come in by TLS or a token. "
          "Write localhost:PORT");
    }
    // The socket of the second address family gets the port of the first.
    auto& in_port = a->ai_family == AF_INET
                        ? reinterpret_cast<sockaddr_in*>(a->ai_addr)->sin_port
                        : reinterpret_cast<sockaddr_in6*>(a->ai_addr)->sin6_port;
    in_port = htons(static_cast<uint16_t>(port_));
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && a->ai_family == AF_INET6) {
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, kBacklog) != 0) {
      error = errno;
      if (fd >= 0) close(fd);
      // "localhost" may resolve to an IPv6 address even if the system has no IPv6.
      const bool absent = error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
      if (absent && (!listeners_.empty() || a->ai_next != nullptr)) continue;
      return wrong(std::strerror(error));
    }
    listeners_.push_back(fd);
    port_ = NameOf(fd, getsockname).port;
  }
  if (listeners_.empty()) return wrong("cannot listen there");
  address_ = HostPort{.host = wanted.host, .port = port_}.ToString();
  if (pipe2(wake_, O_CLOEXEC) == 0) return OkStatus();
  return wrong(std::strerror(errno));
}

ClientPort::~ClientPort() {
  Stop();
  for (const int fd : listeners_) close(fd);
  if (wake_[0] >= 0) close(wake_[0]);
}

Status ClientPort::CheckOwnUser(const HostPort& peer, const HostPort& own) {
  return CheckLoopbackPeer(peer.host, peer.port, own.host, own.port);
}

void ClientPort::Serve(grpc::Server& server, PeerCheck check) {
  server_ = &server;
  check_ = std::move(check);
  thread_ = Scheduler::Real().StartThread("client port", [this] { Accept(); });
}

void ClientPort::Stop() {
  const int end = std::exchange(wake_[1], -1);
  if (end >= 0) close(end);
  thread_ = nullptr;  // waits until the thread has ended
  refusing_ = nullptr;
}

void ClientPort::Accept() {
  std::vector<pollfd> events;
  for (const int fd : listeners_) events.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  events.push_back({.fd = wake_[0], .events = POLLIN, .revents = 0});
  while (true) {
    if (poll(events.data(), events.size(), -1) < 0 && errno != EINTR) return;
    if (events.back().revents != 0) return;
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      if (events[i].revents == 0) continue;
      const int connection = accept4(events[i].fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (connection >= 0) Take(connection);
      // No descriptor is free. Waits for a moment, because other code may close some.
      if (connection < 0 && (errno == EMFILE || errno == ENFILE)) poll(nullptr, 0, 100);
    }
  }
}

// Forgets descriptors that gRPC has closed. If the system has reused a descriptor's number, the
// inode differs.
void ClientPort::ForgetClosed(Sockets* sockets) {
  std::erase_if(*sockets, [](const auto& held) { return InodeOf(held.first) != held.second; });
}

std::vector<std::string> ClientPort::Connected() {
  MutexLock lock(mu_);
  ForgetClosed(&taken_);
  std::vector<std::string> clients;
  for (const auto& [fd, inode] : taken_) clients.push_back(StrCat("fd:", fd));
  return clients;
}

void ClientPort::Take(int connection) {
  const HostPort peer = NameOf(connection, getpeername), own = NameOf(connection, getsockname);
  if (check_(peer, own).ok()) {
    {
      MutexLock lock(mu_);
      taken_[connection] = InodeOf(connection);
    }
    return grpc::AddInsecureChannelFromFd(server_, connection);
  }
  ForgetClosed(&refused_);
  if (refused_.size() >= kRefusedMax) {
    close(connection);
    return;
  }
  refused_[connection] = InodeOf(connection);
  if (refusing_ == nullptr) refusing_ = std::make_unique<RefusingServer>(address_);
  grpc::AddInsecureChannelFromFd(&refusing_->server(), connection);
}

}  // namespace penstock
