// SPDX-License-Identifier: Apache-2.0
//
// DeviceSlowness: the factor by which the nodes of recent steps took longer on a device than their
// known times. A CostTable keeps the fastest times of each node. These do not show that a device is
// throttled or shared with other processes, because most nodes then still run at full speed while a
// few are stopped for long. The total time of all nodes of a step shows it. Const functions are
// thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "core/op/device_name.h"

namespace penstock {

class DeviceSlowness {
 public:
  static constexpr size_t kStepsKept = 12;   // steps kept per device; older steps do not count
  static constexpr size_t kStepsMin = 3;     // with fewer steps the factor is 1
  static constexpr double kFactorMin = 1.1;  // a smaller factor counts as noise
  static constexpr double kFactorMax = 8;    // a step with a larger factor counts with this one

  // Adds one measured step: the total time of its nodes on the device, and the sum of the times
  // that were known for these nodes before the step. Does nothing unless `known_ns` is above 0.
  void Add(const DeviceName& device, double measured_ns, double known_ns);
  // Multiplies the known times of all added steps by `factor`. The caller does so when it
  // multiplies the known times of the device's nodes by `factor`.
  void Rescale(const DeviceName& device, double factor);

  // Returns the sum of measured times divided by the sum of known times, over the last kStepsKept
  // steps without the slowest one. Returns 1 if this is below kFactorMin, or if there were fewer
  // than kStepsMin steps.
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
