// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_stats.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool WaitsForOthers(const NodeStats& stats, const Registry& registry) {
  if (stats.node == kTransferStats) return true;
  const OpDef* const op = registry.FindOp(stats.op);
  return op != nullptr && op->waits_for_others();
}

void StepStatsCollector::Add(const std::string& device, NodeStats stats) {
  MutexLock lock(mu_);
  auto it = std::find_if(devices_.begin(), devices_.end(),
                         [&](const DeviceStats& d) { return d.device == device; });
  if (it == devices_.end()) it = devices_.insert(it, DeviceStats{device, {}});
  it->nodes.push_back(std::move(stats));
}

std::vector<DeviceStats> StepStatsCollector::Take() {
  MutexLock lock(mu_);
  std::sort(devices_.begin(), devices_.end(),
            [](const DeviceStats& a, const DeviceStats& b) { return a.device < b.device; });
  return std::exchange(devices_, {});
}

}  // namespace penstock
