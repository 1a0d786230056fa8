// SPDX-License-Identifier: Apache-2.0
//
// BusyLanes: when a device has a lane free, with the gaps that nodes placed earlier have left.
// Remembers the last few gaps only, so that asking takes constant time.
#pragma once

#include <cstddef>
#include <vector>

namespace penstock {

class BusyLanes {
 public:
  BusyLanes(int lanes, double free_from_ns);

  // The earliest start, not before `ready_ns`, of something that takes `nanos`.
  double StartFor(double ready_ns, double nanos) const;
  // Takes the time that StartFor(ready_ns, nanos) answered.
  void Take(double start_ns, double nanos);

 private:
  struct Span {
    double begin_ns, end_ns;
  };
  void AddGap(Span gap);

  std::vector<double> free_;  // by lane: from when on
  std::vector<Span> gaps_;    // a ring
  size_t oldest_ = 0;
};

}  // namespace penstock
