// SPDX-License-Identifier: Apache-2.0
//
// BusyLanes: finds times at which a device has a free lane, including the gaps between nodes placed
// earlier. Keeps only the last few gaps, so that a query takes constant time.
#pragma once

#include <cstddef>
#include <vector>

namespace penstock {

class BusyLanes {
 public:
  BusyLanes(int lanes, double free_from_ns);

  // Returns the earliest start, not before `ready_ns`, for work that takes `nanos`.
  double StartFor(double ready_ns, double nanos) const;
  // Reserves a lane for `nanos` from `start_ns` on. REQUIRES: StartFor has returned `start_ns` for
  // this work.
  void Take(double start_ns, double nanos);

 private:
  struct Span {
    double begin_ns, end_ns;
  };
  void AddGap(Span gap);

  std::vector<double> free_;  // by lane: the time from which it is free
  std::vector<Span> gaps_;    // the last gaps, as a ring buffer
  size_t oldest_ = 0;
};

}  // namespace penstock
