// SPDX-License-Identifier: Apache-2.0
//
// TaskName: "/job:ps/replica:0/task:1", the name of a task of the cluster. A process parses names
// once, when it receives them, so that code that runs for every tensor compares TaskNames instead
// of parsing strings.
#pragma once

#include <string>
#include <utility>

#include "core/base/status.h"
#include "core/op/device_name.h"

namespace penstock {

struct TaskName {
  std::string job;
  int replica = 0;
  int task = 0;

  // Parses the name of a task. InvalidArgument unless `text` names one task: its job, replica and
  // number, and no device.
  static StatusOr<TaskName> Parse(string_view text);
  // Returns the task of a device. InvalidArgument unless `device` is a full name.
  static StatusOr<TaskName> OfDevice(string_view device);

  auto operator<=>(const TaskName&) const = default;
  std::string ToString() const;
  // Returns the name of a device of the task: "/job:ps/replica:0/task:1/device:CPU:0".
  DeviceName Device(string_view type, int index) const;
  template <class H>
  friend H AbslHashValue(H state, const TaskName& name) {
    return H::combine(std::move(state), name.job, name.replica, name.task);
  }
};

}  // namespace penstock
