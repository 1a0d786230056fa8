// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/listen_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <set>

#include "absl/strings/ascii.h"
#include "core/base/detached_thread.h"

namespace penstock {
namespace {

// Tries to bind a socket to the address. Returns 0, or the error number.
int TryToBind(const addrinfo& address) {
  const int socket_fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return errno;
  // Allows ports on which only closed connections linger (TIME_WAIT), as gRPC's servers do.
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (bind(socket_fd, address.ai_addr, address.ai_addrlen) != 0 || listen(socket_fd, 1) != 0) {
    error = errno;
  }
  close(socket_fd);
  return error;
}

bool HasIpv6() {
  const int socket_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return false;
  close(socket_fd);
  return true;
}

// Returns whether `host` is "localhost" or a loopback address, which no other host can reach.
bool IsLoopback(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return absl::AsciiStrToLower(host) == "localhost";
}

// Returns what to do about an error of bind.
const char* AdviceOn(int error) {
  switch (error) {
    case EADDRINUSE:
      return "; is this task running already?";
    case EACCES:
      return "; low ports need the capability CAP_NET_BIND_SERVICE: choose a port above 1023";
    default:
      return "; give --listen_address an address of this host";
  }
}

constexpr auto kResolverTime = std::chrono::seconds(5);

// Returns the bytes of an address without its port; "" for families other than IPv4 and IPv6.
std::string BytesOf(const sockaddr* address) {
  if (address == nullptr) return "";
  const auto bytes = [](const auto& in) {
    return std::string(reinterpret_cast<const char*>(&in), sizeof(in));
  };
  if (address->sa_family == AF_INET) {
    return bytes(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  }
  if (address->sa_family == AF_INET6) {
    return bytes(reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  }
  return "";
}

bool IsLoopback(const sockaddr* address) {
  const std::string bytes = BytesOf(address);
  if (bytes.size() == sizeof(in_addr)) return bytes[0] == 127;
  in6_addr v6;
  std::memcpy(&v6, bytes.data(), sizeof(v6));
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

std::set<std::string> OwnAddresses() {
  std::set<std::string> own;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return own;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    own.insert(BytesOf(entry->ifa_addr));
  }
  freeifaddrs(list);
  return own;
}

// Returns whether a host's name resolves only to addresses of this host, none of them loopback.
bool IsThisHost(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::set<std::string> own = OwnAddresses();
  bool all = true;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    all = all && own.contains(BytesOf(a->ai_addr)) && !IsLoopback(a->ai_addr);
  }
  freeaddrinfo(found);
  return all;
}

// Does the same as IsThisHost, but returns false if the resolver takes too long. getaddrinfo cannot
// be cancelled: its thread then ends by itself.
bool IsThisHostInTime(const std::string& host) {
  const auto answer = std::make_shared<std::promise<bool>>();
  std::future<bool> known = answer->get_future();
  const auto ask = [answer, host] { answer->set_value(IsThisHost(host)); };
  if (!StartDetachedThread("resolver", ask).ok()) return false;
  return known.wait_for(kResolverTime) == std::future_status::ready && known.get();
}

// Returns whether there is a port in "HOST", "HOST:PORT", "[V6]" or "[V6]:PORT".
bool HasPort(string_view address) {
  const size_t bracket = address.rfind(']');
  return address.find(':', bracket == string_view::npos ? 0 : bracket) != string_view::npos;
}

}  // namespace

StatusOr<HostPort> FindListenAddress(const HostPort& own, const std::string& listen_address) {
  if (listen_address.empty()) {
    if (IsLoopback(own.host) || IsThisHostInTime(own.host)) return own;
    // An IPv6 socket for all addresses also accepts IPv4 connections.
    return HostPort{.host = HasIpv6() ? "::" : "0.0.0.0", .port = own.port};
  }
  const bool has_port = HasPort(listen_address);
  const auto parsed =
      HostPort::Parse(has_port ? listen_address : StrCat(listen_address, ":", own.port));
  if (!parsed.ok()) {
    return InvalidArgument("--listen_address: '", listen_address,
                           "' is neither HOST nor HOST:PORT: ", parsed.status().message());
  }
  if (has_port && parsed->port == 0 && own.port != 0) {
    return InvalidArgument("--listen_address: '", listen_address,
                           "' leaves the port open, but peers call this task at ", own.ToString(),
                           "; give the port that leads there");
  }
  return *parsed;
}

Status CheckListenAddress(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(address.host.c_str(), StrCat(address.port).c_str(), &hints, &found);
  if (failed != 0) {
    return InvalidArgument("cannot listen on ", address.ToString(), ": ", gai_strerror(failed),
                           "; give --listen_address an address of this host");
  }
  int error = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    error = TryToBind(*a);
    if (error == 0) break;  // one address is enough for gRPC, too
  }
  freeaddrinfo(found);
  if (error == 0) return OkStatus();
  return InvalidArgument("cannot listen on ", address.ToString(), ": ", std::strerror(error),
                         AdviceOn(error));
}

}  // namespace penstock
