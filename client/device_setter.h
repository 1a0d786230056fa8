// SPDX-License-Identifier: Apache-2.0
//
// Device functions for parameter-server programs (GraphBuilder::DeviceFunctionScope): they choose
// the device of each new node for which the program requests none, and fill in the missing parts of
// a requested device.
//
//   const auto scope = program.DeviceFunctionScope(
//       ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:1"}));
//
// Ops that work on a variable are placed on the variable's device. Devices that inner scopes
// request take precedence.
#pragma once

#include <string>

#include "core/graph/builder.h"

namespace penstock::client {

enum class Balance {
  kRoundRobin,  // assigns variables to the tasks in turn, in order of creation
  kBytes,       // assigns each variable to the task that holds the fewest bytes
};

struct ReplicaDevices {
  int ps_tasks = 0;  // 0: everything goes to worker_device
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  Balance balance = Balance::kRoundRobin;
};

// Returns a device function that spreads variables (except local ones) and tables over the ps
// tasks, and puts everything else on the worker. All workers must make the same variables in the
// same order, so that they agree on the devices. The function keeps counts, so use it for one
// program only. With Balance::kBytes, an unknown dimension counts as 1, and a DynamicTable without
// a limit counts as a table of 1 M rows.
GraphBuilder::DeviceFunction ReplicaDeviceSetter(const ReplicaDevices& devices);

// Returns `device` with its type and index replaced by CPU:0; `device` itself if it names no type
// or is not a device's name.
std::string HostOf(const std::string& device);

// Returns a device function that puts everything on `device`, except ops that work on a variable.
GraphBuilder::DeviceFunction OnDevice(const std::string& device);

}  // namespace penstock::client
