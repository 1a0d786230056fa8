// SPDX-License-Identifier: Apache-2.0
//
// CompileReport: how long each pass took, and why each node is where it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct PlacementReport {
  enum class Reason { kOnlyDevice, kHoldsState, kEndsSoonest, kShortensStep };
  struct Candidate {
    int device = 0;     // in `devices`
    double end_ns = 0;  // of the group, were it to go there; 0 if costs did not decide
  };
  // Nodes that must share a device.
  struct Group {
    std::string node;   // the first one, in topological order
    int num_nodes = 0;  // of the group
    int device = 0;     // in `devices`
    Reason reason = Reason::kOnlyDevice;
    std::vector<Candidate> candidates;  // devices that the constraints and the kernels allow

    bool has_choice() const {
      return reason == Reason::kEndsSoonest || reason == Reason::kShortensStep;
    }
  };
  // One node's run in the predicted step: when it runs, and which transfers it needs.
  struct Run {
    std::string node;
    int device = 0, lane = 0;
    double start_ns = 0, end_ns = 0;
    std::string op = "";
    double flops = 0;
    double bytes = 0;       // of its outputs
    bool measured = false;  // else its time is an estimate
  };
  struct Transfer {
    std::string node;  // whose output it is
    int from = 0, to = 0;
    double bytes = 0;
    double start_ns = 0, end_ns = 0;
  };
  std::vector<std::string> devices;
  std::vector<Group> groups;  // in topological order of their first nodes
  bool kept = false;          // all groups are where they were before
  // The rest only if CompileOptions::predict asks for it.
  double step_ns = 0;   // what the step is predicted to take
  double least_ns = 0;  // no placement under the same constraints takes less
  std::vector<Run> runs;
  std::vector<Transfer> transfers;
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
