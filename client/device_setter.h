// SPDX-License-Identifier: Apache-2.0
//
// Device functions for parameter-server programs (GraphBuilder::DeviceFunctionScope): where each
// new node should go when the program does not say.
//
//   const auto scope = program.DeviceFunctionScope(
//       ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:1"}));
//
// Ops that work on a variable go to the variable. What inner scopes ask for comes first.
#pragma once

#include <string>

#include "core/graph/builder.h"

namespace penstock::client {

enum class Balance {
  kRoundRobin,  // one variable each, in order of creation
  kBytes,       // each to the task that holds the fewest bytes
};

struct ReplicaDevices {
  int ps_tasks = 0;  // 0: everything goes to worker_device
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  Balance balance = Balance::kRoundRobin;
};

// Spreads variables (but local ones) and tables over the ps tasks; everything else goes to the
// worker. Programs that
// make the same variables in the same order agree on where they are: so must all workers. Keeps
// count: one setter serves one program. A dimension that is unknown counts as 1.
GraphBuilder::DeviceFunction ReplicaDeviceSetter(const ReplicaDevices& devices);

// The CPU of the task that `device` is one of; `device` if it names none.
std::string HostOf(const std::string& device);

// Everything to `device`, but for ops that work on a variable.
GraphBuilder::DeviceFunction OnDevice(const std::string& device);

}  // namespace penstock::client
