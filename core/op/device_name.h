// SPDX-License-Identifier: Apache-2.0
//
// DeviceName: a full or partial device name, such as "/job:worker/replica:0/task:17/device:GPU:3".
// Only this file parses such names. A component that is absent or "*" matches any value. Parse also
// accepts the legacy forms "/cpu:0", "/gpu:1" and "/CPU:0". DeviceInfo: a device and its rates.
#pragma once

#include <optional>
#include <string>

#include "core/base/status.h"

namespace penstock {

struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU", "GPU"; upper case
  std::optional<int> index;

  // Parses a full or partial name. InvalidArgument shows `text` and the component that is wrong.
  static StatusOr<DeviceName> Parse(string_view text);
  auto operator<=>(const DeviceName&) const = default;
  std::string ToString() const;  // "" if no component is given
  bool full() const { return job && replica && task && type && index; }

  // Returns true if `full_name` has the same value for every component that this name gives.
  bool Matches(const DeviceName& full_name) const;
  // Returns a name with the components of both names; InvalidArgument if they give different values
  // for a component. With `soft`, different types drop type and index from the result instead, and
  // different indices drop the index.
  StatusOr<DeviceName> Merge(const DeviceName& other, bool soft = false) const;
  // Returns this name without type and index, the name of a task: "/job:worker/replica:0/task:17".
  DeviceName Task() const;
  bool SameTask(const DeviceName& other) const;
};

// Rough rates of a device. The compiler compares alternatives with them; they are not accurate
// enough to predict times.
struct DeviceRates {
  double flops_per_ns = 50;
  double bytes_per_ns = 10;  // bandwidth of the device's memory
  double launch_ns = 200;    // time of a kernel that does nothing
};
// Returns typical rates of a device of this type, "CPU" or "GPU".
DeviceRates DefaultRates(string_view type);

struct LinkRates {
  double bytes_per_ns;
  double latency_ns;
};

// Properties of a device of the cluster, for the compiler and for clients.
struct DeviceInfo {
  DeviceName name;  // full name
  // Incarnation of the process that owns the device; never 0 if the process runs.
  uint64_t incarnation = 0;
  int64_t memory_limit = 0;  // bytes
  std::string description = "";
  DeviceRates rates = {};
  int lanes = 1;  // how many nodes the device can run at once
  // Rates of copies between devices of the same task, and of messages to other tasks.
  LinkRates link_in_task = {.bytes_per_ns = 10, .latency_ns = 10'000};
  LinkRates link_to_tasks = {.bytes_per_ns = 1, .latency_ns = 100'000};
};

}  // namespace penstock
