// SPDX-License-Identifier: Apache-2.0
//
// InProcessSessions: the addresses that servers of this process serve, and how sessions with them
// are made. Known to those who make remote sessions; it does not need the server's code.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "distributed/session/session.h"

namespace penstock {

class InProcessSessions {
 public:
  using Make = std::function<std::unique_ptr<SessionInterface>(const SessionOptions&)>;

  // `address`: "host:port", as the server says it.
  static void Add(const std::string& address, Make make);
  static void Remove(const std::string& address);
  // Null if no server of this process has the address.
  static std::unique_ptr<SessionInterface> New(const std::string& address,
                                               const SessionOptions& options);
};

}  // namespace penstock
