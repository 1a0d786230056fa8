// SPDX-License-Identifier: Apache-2.0
//
// DeviceName: "/job:worker/replica:0/task:17/device:GPU:3", whole or in part. Strings become values
// here, once. Parts that are absent or "*" mean any. Legacy forms "/cpu:0", "/gpu:1", "/CPU:0" are
// understood.
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

  // InvalidArgument shows the text and says which part is wrong.
  static StatusOr<DeviceName> Parse(string_view text);
  auto operator<=>(const DeviceName&) const = default;
  std::string ToString() const;  // "" where nothing is said
  bool full() const { return job && replica && task && type && index; }

  // True where every part that this one states is stated equally by `full_name`.
  bool Matches(const DeviceName& full_name) const;
  // Both constraints together; InvalidArgument where they contradict. With `soft`, a conflict in
  // type or index drops those parts instead.
  StatusOr<DeviceName> Merge(const DeviceName& other, bool soft = false) const;
  // The same task: "/job:worker/replica:0/task:17".
  DeviceName Task() const;
  bool SameTask(const DeviceName& other) const;
};

// How fast a device is, roughly: rates rank alternatives, they do not predict times.
struct DeviceRates {
  double flops_per_ns = 50;
  double bytes_per_ns = 10;  // of its memory
  double launch_ns = 200;    // of a kernel that does nothing
};
// The rates of a device of this type: the defaults for "CPU", others for "GPU".
DeviceRates DefaultRates(string_view type);

struct LinkRates {
  double bytes_per_ns;
  double latency_ns;
};

// What the compiler and clients know of a device of the cluster.
struct DeviceInfo {
  DeviceName name;           // full
  uint64_t incarnation = 0;  // of the process that owns it; never 0 for a live one
  int64_t memory_limit = 0;  // bytes
  std::string description = "";
  DeviceRates rates = {};
  int lanes = 1;  // nodes that it runs at once
  // Copies between devices of its task, and messages to other tasks.
  LinkRates link_in_task = {.bytes_per_ns = 10, .latency_ns = 10'000};
  LinkRates link_to_tasks = {.bytes_per_ns = 1, .latency_ns = 100'000};
};

}  // namespace penstock
