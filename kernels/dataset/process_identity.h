// SPDX-License-Identifier: Apache-2.0
//
// ProcessIdentity: names a process, so that a file that the process has left tells other processes
// whether it still runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/env.h"

namespace penstock {

struct ProcessIdentity {
  std::string host;
  std::string boot;  // a name of the host's current boot, which no other boot has
  int64_t pid = 0;
  int64_t start = 0;  // clock ticks since the boot; tells processes with the same pid apart

  enum class Life { kRuns, kEnded, kUnknown };

  // Returns an error if `env` has no /proc.
  static StatusOr<ProcessIdentity> OfThisProcess(Env& env);
  // Returns the identity that ToString has written; nothing if `text` is something else.
  static std::optional<ProcessIdentity> Parse(string_view text);
  std::string ToString() const;

  // Returns kUnknown if the process was on another host, or if `env` has no /proc. A container
  // counts as a host of its own.
  Life LifeNow(Env& env) const;
  // Returns whether the process was on this host since the host's last boot.
  bool IsOfThisBoot(Env& env) const;
};

}  // namespace penstock
