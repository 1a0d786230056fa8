// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/busy_lanes.h"

#include <algorithm>
#include <cstddef>

namespace penstock {
namespace {

constexpr size_t kGapsMax = 16;

}  // namespace

BusyLanes::BusyLanes(int lanes, double free_from_ns) : free_(lanes, free_from_ns) {}

double BusyLanes::StartFor(double ready_ns, double nanos) const {
  double start = std::max(ready_ns, *std::min_element(free_.begin(), free_.end()));
  for (const Span& gap : gaps_) {
    const double begin = std::max(gap.begin_ns, ready_ns);
    if (begin + nanos <= gap.end_ns) start = std::min(start, begin);
  }
  return start;
}

void BusyLanes::Take(double start_ns, double nanos) {
  const double end_ns = start_ns + nanos;
  for (Span& gap : gaps_) {
    if (gap.begin_ns > start_ns || end_ns > gap.end_ns) continue;
    const Span rest = {end_ns, gap.end_ns};
    gap.end_ns = start_ns;
    AddGap(rest);
    return;
  }
  double& lane = *std::min_element(free_.begin(), free_.end());
  AddGap({lane, start_ns});
  lane = end_ns;
}

void BusyLanes::AddGap(Span gap) {
  if (gap.begin_ns >= gap.end_ns) return;
  if (gaps_.size() < kGapsMax) {
    gaps_.push_back(gap);
    return;
  }
  gaps_[oldest_] = gap;
  oldest_ = (oldest_ + 1) % kGapsMax;
}

}  // namespace penstock
