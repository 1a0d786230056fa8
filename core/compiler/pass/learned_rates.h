// SPDX-License-Identifier: Apache-2.0
//
// LearnedRates: how much longer nodes were measured to take than was estimated, by op and by
// device: what corrects the estimates of nodes that were never measured where they are asked for.
//
// An op's factor is that of all its measurements on one type of device ("CPU"). A device's slowness
// compares it with others of its type by the ops that were measured on several of them; it is 1 for
// a device that shares no op with another. A value; thread-safe while it is const.
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
  // Call when all is added.
  void Finish();

  // By what an estimate for a node of this op on `device` is to be multiplied.
  double Factor(string_view op, const DeviceName& device) const;
  // By what a time measured on `from` is to be multiplied for `to`, of the same type.
  double Slowness(const DeviceName& from, const DeviceName& to) const;

 private:
  struct Sums {
    double measured = 0, estimated = 0;
    double factor() const { return estimated > 0 ? measured / estimated : 1; }
  };
  struct Op {
    Sums sums;
    std::vector<std::pair<int, Sums>> by_device;
  };
  struct Device {
    DeviceName name;
    double slowness = 1;
  };
  int IndexOf(const DeviceName& device);
  double SlownessOf(const DeviceName& device) const;

  std::vector<Device> devices_;
  std::map<std::pair<std::string, std::string>, Op> ops_;  // by type of device and op
  std::map<std::string, Sums, std::less<>> types_;
};

}  // namespace penstock
