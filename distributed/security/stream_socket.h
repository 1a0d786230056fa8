// SPDX-License-Identifier: Apache-2.0
//
// StreamSocket: a plain TCP connection, to find out what listens at an address. No function
// blocks longer than its timeout.
#pragma once

#include <netdb.h>

#include <cstddef>
#include <memory>
#include <string>

#include "distributed/cluster/cluster_spec.h"

namespace penstock {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Returns the TCP addresses of a host and port; `*error` is getaddrinfo's error, 0 if
// there are addresses.
AddressList ResolveAddresses(const HostPort& to, int* error);

class StreamSocket {
 public:
  explicit StreamSocket(int family);
  ~StreamSocket();
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;

  // Connects to `address`. Returns 0, or the error number; ETIMEDOUT after `timeout_ms`.
  int Connect(const addrinfo& address, int timeout_ms);
  // Waits for the event of poll(2), at most `timeout_ms`. Returns true if the event or an error of
  // the socket has come.
  bool Await(short event, int timeout_ms) const;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Connects to the first of the addresses that answers. If none does, returns null, and sets
// `*error` to the error number of the last one. Waits up to `timeout_ms` for each.
std::unique_ptr<StreamSocket> ConnectToAny(const addrinfo* addresses, int timeout_ms, int* error);

// The first bytes that an HTTP/2 client sends: the preface and an empty SETTINGS frame (RFC 9113,
// 3.4).
inline constexpr char kHttp2Preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
inline constexpr size_t kHttp2PrefaceBytes = sizeof(kHttp2Preface);
// Returns whether the first `count` bytes that a server sent begin a SETTINGS frame.
bool IsSettingsFrame(const char* bytes, size_t count);

}  // namespace penstock
