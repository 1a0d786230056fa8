// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/device_slowness.h"

#include <algorithm>

namespace penstock {

const DeviceSlowness::Device* DeviceSlowness::Find(const DeviceName& name) const {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [&](const Device& device) { return device.name == name; });
  return found == devices_.end() ? nullptr : &*found;
}

void DeviceSlowness::Add(const DeviceName& device, double measured_ns, double known_ns) {
  if (known_ns <= 0) return;
  Device* known = Find(device);
  if (known == nullptr) known = &devices_.emplace_back(Device{.name = device, .steps = {}});
  known->steps.push_back({std::min(measured_ns, kFactorMax * known_ns), known_ns});
  if (known->steps.size() > kStepsKept) known->steps.pop_front();
}

void DeviceSlowness::Rescale(const DeviceName& device, double factor) {
  Device* const known = Find(device);
  if (known == nullptr) return;
  for (Step& step : known->steps) step.known_ns *= factor;
}

double DeviceSlowness::Of(const DeviceName& device) const {
  const Device* const known = Find(device);
  if (known == nullptr || known->steps.size() < kStepsMin) return 1;
  Step sum, slowest;
  for (const Step& step : known->steps) {
    sum.measured_ns += step.measured_ns;
    sum.known_ns += step.known_ns;
    if (step.measured_ns * slowest.known_ns >= slowest.measured_ns * step.known_ns) slowest = step;
  }
  const double ratio = (sum.measured_ns - slowest.measured_ns) / (sum.known_ns - slowest.known_ns);
  return ratio < kFactorMin ? 1 : ratio;
}

}  // namespace penstock
