// SPDX-License-Identifier: Apache-2.0
//
// InProcessSessions: a registry of the addresses of this process's servers, with functions that
// make sessions there. The code that makes remote sessions finds tasks of this process here,
// without linking the server's code. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "distributed/session/session.h"

namespace penstock {

class InProcessSessions {
 public:
  using Make = std::function<std::unique_ptr<SessionInterface>(const SessionOptions&)>;

  // Adds the server at `address`, "host:port" as the server reports it; `make` makes its sessions.
  static void Add(const std::string& address, Make make);
  static void Remove(const std::string& address);
  // Makes a session; null if no server of this process has the address.
  static std::unique_ptr<SessionInterface> New(const std::string& address,
                                               const SessionOptions& options);
};

}  // namespace penstock
