// SPDX-License-Identifier: Apache-2.0
//
// DeviceSlowness: by how much longer the nodes of recent steps took on a device than is known of
// them. A CostTable follows the quickest times of each node, which tell nothing of a device that
// is throttled or shared: there most nodes run at full speed, and some are stopped for long. All
// nodes of a step together show it. A value; thread-safe while it is const.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "core/op/device_name.h"

namespace penstock {

class DeviceSlowness {
 public:
  static constexpr size_t kStepsKept = 12;  // per device: older ones do not count
  static constexpr size_t kStepsMin = 3;    // fewer tell nothing
  static constexpr double kLeast = 1.1;     // less is noise
  static constexpr double kMost = 8;        // a step that was stopped for longer counts as this

  // One measured step: what its nodes took on the device together, and what was known of them
  // before. Left out unless `known_ns` is above 0.
  void Add(const DeviceName& device, double measured_ns, double known_ns);
  // Multiplies the known times of the steps that were added by `factor`, as those of the device's
  // nodes have been.
  void Rescale(const DeviceName& device, double factor);

  // The ratio of the sums over the last kStepsKept steps, without the slowest of them; 1 if it is
  // below kLeast, or if there were fewer than kStepsMin.
  double Of(const DeviceName& device) const;

 private:
  struct Step {
    double measured_ns = 0, known_ns = 0;
  };
  struct Device {
    DeviceName name;
    std::deque<Step> steps;
  };
  const Device* Find(const DeviceName& name) const;
  Device* Find(const DeviceName& name) {
    return const_cast<Device*>(static_cast<const DeviceSlowness*>(this)->Find(name));
  }

  std::vector<Device> devices_;
};

}  // namespace penstock
