// SPDX-License-Identifier: Apache-2.0
//
// LearnedRates: the ratio of measured to estimated time, by op and by device. A CostTable corrects
// estimates with it, for nodes that were not measured on a device.
//
// An op's factor is computed from all its measurements on one type of device ("CPU"); an op without
// measurements on that type gets the factor of all ops together. A device's slowness compares the
// device with others of its type, by the ops that were measured on several devices; it is 1 for a
// device that has no such op. Const functions are thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/op/device_name.h"

namespace penstock {

class LearnedRates {
 public:
  void Add(string_view op, const DeviceName& device, double measured_ns, double estimated_ns);
  // Computes the devices' slowness. Call this after the last Add.
  void Finish();

  // Returns the factor by which to multiply an estimate for a node of this op on `device`.
  double Factor(string_view op, const DeviceName& device) const;
  // Returns the factor by which to multiply a time measured on `from` to predict it on `to`, a
  // device of the same type.
  double Slowness(const DeviceName& from, const DeviceName& to) const;

 private:
  struct RateSums {
    double measured = 0, estimated = 0;
    double factor() const { return estimated > 0 ? measured / estimated : 1; }
  };
  struct Op {
    RateSums sums;
    std::vector<std::pair<int, RateSums>> by_device;
  };
  struct Device {
    DeviceName name;
    double slowness = 1;
  };
  int IndexOf(const DeviceName& device);
  double SlownessOf(const DeviceName& device) const;

  std::vector<Device> devices_;
  std::map<std::pair<std::string, std::string>, Op> ops_;  // key: type of device, op
  std::map<std::string, RateSums, std::less<>> types_;
};

}  // namespace penstock
