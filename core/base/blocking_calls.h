// SPDX-License-Identifier: Apache-2.0
//
// BlockingCall: marks a call of the operating system that nothing can cancel, such as a read from a
// disk that hangs. If such a call keeps the process from ending, the process prints the call's
// description.
//
//   const BlockingCall call("node 'read' of step 7", env);
//   ... read ...
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

class BlockingCall {
 public:
  BlockingCall(std::string what, Env& env);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Returns the calls under way, oldest first: "node 'read' of step 7, for 12 s".
  static std::vector<std::string> List(Env& env);

 private:
  struct Table;
  const std::string what_;
  const int64_t since_ns_;
};

}  // namespace penstock
