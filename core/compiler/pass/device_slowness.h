// SPDX-License-Identifier: Apache-2.0
//
// DeviceSlowness: the factor by which the nodes of recent steps took longer on a device than their
// known times. A CostTable keeps the quickest times of each node. The quickest times do not show
// that a device is throttled or shared, because most nodes then still run at full speed while some
// are stopped for long. The sum of the times of all nodes of a step shows it. A value type; const
// functions are thread-safe.
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
  static constexpr double kFactorMax = 8;    // the maximum for one step

  // Adds one measured step: the total time of its nodes on the device, and the sum of their times
  // that were known before. Ignored unless `known_ns` is above 0.
  void Add(const DeviceName& device, double measured_ns, double known_ns);
  // Multiplies the known times of the steps that were added by `factor`. To be called when the
  // known times of the device's nodes are multiplied by `factor`.
  void Rescale(const DeviceName& device, double factor);

  // Returns the ratio of the sums of measured and known times over the last kStepsKept steps,
  // without the slowest step; 1 if the ratio is below kFactorMin, or if there were fewer than
  // kStepsMin steps.
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
