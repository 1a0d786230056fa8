// SPDX-License-Identifier: Apache-2.0
//
// CompileReport: how long each pass took, and why each node is where it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct PlacementReport {
  enum class Reason { kOnlyDevice, kHoldsState, kEndsSoonest };
  struct Candidate {
    int device = 0;     // in `devices`
    double end_ns = 0;  // of the group's first node, in the simulated step
  };
  // Nodes that must share a device.
  struct Group {
    std::string node;   // the first one, in topological order
    int num_nodes = 0;  // of the group
    int device = 0;     // in `devices`
    Reason reason = Reason::kOnlyDevice;
    std::vector<Candidate> candidates;  // devices that the constraints and the kernels allow
  };
  std::vector<std::string> devices;
  std::vector<Group> groups;  // in the order of the decisions
};

struct CompileReport {
  struct PassTime {
    std::string pass;
    int64_t nanos = 0;
  };
  std::vector<PassTime> passes;  // those that ran, in order
  PlacementReport placement;
};

// For people: a line for each pass, a line for each group and for each of its candidates.
std::string ToString(const CompileReport& report);

}  // namespace penstock
