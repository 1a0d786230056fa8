// SPDX-License-Identifier: Apache-2.0
#include "core/op/noted_staleness.h"

#include <algorithm>
#include <map>

#include "core/base/mutex.h"

namespace penstock {
namespace {

// The maximum staleness of an update that is recorded, so that the sum does not overflow.
constexpr int64_t kStalenessMax = int64_t{1} << 40;

struct StalenessByDevice {
  Mutex mu;
  std::map<std::string, NotedStaleness> noted ABSL_GUARDED_BY(mu);
};
StalenessByDevice& GlobalStaleness() {
  static StalenessByDevice& all = *new StalenessByDevice;
  return all;
}

}  // namespace

void NoteStaleness(const std::string& device, int64_t staleness) {
  const int64_t value = std::clamp<int64_t>(staleness, 0, kStalenessMax);
  const auto& bounds = NotedStaleness::kBounds;
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  StalenessByDevice& all = GlobalStaleness();
  MutexLock lock(all.mu);
  NotedStaleness& noted = all.noted[device];
  ++noted.counts[static_cast<size_t>(bucket)];
  noted.sum += value;
}

NotedStaleness StalenessOf(const std::string& device) {
  StalenessByDevice& all = GlobalStaleness();
  MutexLock lock(all.mu);
  const auto found = all.noted.find(device);
  return found == all.noted.end() ? NotedStaleness() : found->second;
}

}  // namespace penstock
