// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/learned_rates.h"

#include <algorithm>

namespace penstock {

int LearnedRates::IndexOf(const DeviceName& device) {
  const auto known = std::find_if(devices_.begin(), devices_.end(),
                                  [&](const Device& d) { return d.name == device; });
  if (known != devices_.end()) return static_cast<int>(known - devices_.begin());
  devices_.push_back({device});
  return static_cast<int>(devices_.size()) - 1;
}

void LearnedRates::Add(string_view op, const DeviceName& device, double measured_ns,
                       double estimated_ns) {
  if (estimated_ns <= 0) return;
  const std::string type = device.type.value_or("");
  const int index = IndexOf(device);
  Op& of_op = ops_[{type, std::string(op)}];
  auto own = std::find_if(of_op.by_device.begin(), of_op.by_device.end(),
                          [&](const auto& entry) { return entry.first == index; });
  if (own == of_op.by_device.end()) own = of_op.by_device.insert(own, {index, RateSums()});
  for (RateSums* const sums : {&of_op.sums, &own->second, &types_[type]}) {
    sums->measured += measured_ns;
    sums->estimated += estimated_ns;
  }
}

void LearnedRates::Finish() {
  std::vector<RateSums> of_device(devices_.size());
  for (const auto& [name, op] : ops_) {
    if (op.by_device.size() < 2) continue;
    for (const auto& [index, sums] : op.by_device) {
      of_device[index].measured += sums.measured;
      of_device[index].estimated += sums.estimated * op.sums.factor();
    }
  }
  for (size_t i = 0; i < devices_.size(); ++i) devices_[i].slowness = of_device[i].factor();
}

double LearnedRates::SlownessOf(const DeviceName& device) const {
  for (const Device& known : devices_) {
    if (known.name == device) return known.slowness;
  }
  return 1;
}

double LearnedRates::Factor(string_view op, const DeviceName& device) const {
  if (devices_.empty()) return 1;
  const std::string type = device.type.value_or("");
  const auto of_op = ops_.find({type, std::string(op)});
  if (of_op != ops_.end()) return of_op->second.sums.factor() * SlownessOf(device);
  const auto of_type = types_.find(type);
  return of_type == types_.end() ? 1 : of_type->second.factor() * SlownessOf(device);
}

double LearnedRates::Slowness(const DeviceName& from, const DeviceName& to) const {
  return SlownessOf(to) / SlownessOf(from);
}

}  // namespace penstock
