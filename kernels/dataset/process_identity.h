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
  // Containers of one Kubernetes pod have the same host and boot, but each may have pids of its
  // own.
  std::string pid_namespace;
  int64_t pid = 0;    // in that namespace
  int64_t start = 0;  // clock ticks since the boot; tells processes with the same pid apart

  enum class Life { kRuns, kEnded, kUnknown };

  // Returns an error if `env` has no /proc.
  static StatusOr<ProcessIdentity> OfThisProcess(Env& env);
  // Returns the identity that ToString has written; nothing if `text` is something else.
  static std::optional<ProcessIdentity> Parse(string_view text);
  std::string ToString() const;

  // Returns kUnknown if the process was on another host or in another PID namespace (another
  // container), if `env` has no /proc, or if /proc hides the processes of other users. A process
  // that has ended, but that its parent has not waited for, is kEnded. After another boot of the
  // host every process is kEnded.
  Life LifeNow(Env& env) const;
  // Returns whether the process was on this host since the host's last boot.
  bool IsOfThisBoot(Env& env) const;
};

}  // namespace penstock
