// SPDX-License-Identifier: Apache-2.0
//
// CompileReport: how long each pass took, why each node got its device, and how much memory the
// step is predicted to take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct PlacementReport {
  enum class Reason { kOnlyDevice, kHoldsState, kEndsSoonest, kShortensStep };
  struct Candidate {
    int device = 0;     // in `devices`
    double end_ns = 0;  // predicted end of the group on this device; 0 if costs did not decide
  };
  // Nodes that must share a device.
  struct Group {
    std::string node;   // the first one, in topological order
    int num_nodes = 0;  // number of nodes in the group
    int device = 0;     // in `devices`
    Reason reason = Reason::kOnlyDevice;
    std::vector<Candidate> candidates;  // devices that the constraints and the kernels allow

    bool has_choice() const {
      return reason == Reason::kEndsSoonest || reason == Reason::kShortensStep;
    }
  };
  // One node's run in the predicted step.
  struct Run {
    std::string node;
    int device = 0, lane = 0;
    double start_ns = 0, end_ns = 0;
    std::string op = "";
    double flops = 0;
    double bytes = 0;       // total bytes of the node's outputs
    bool measured = false;  // true if the node's time was measured, false if it is an estimate
  };
  struct Transfer {
    std::string node;  // the node whose output is sent
    int from = 0, to = 0;
    double bytes = 0;
    double start_ns = 0, end_ns = 0;
  };
  std::vector<std::string> devices;
  std::vector<Group> groups;  // in topological order of their first nodes
  bool kept = false;  // true if all groups kept their devices of CompileOptions::placed_before
  // The members below are set only if CompileOptions::predict is true.
  double step_ns = 0;   // the predicted time of the step
  double least_ns = 0;  // a lower bound for all placements under the same constraints
  std::vector<Run> runs;
  std::vector<Transfer> transfers;
};

// The memory that the step's tensors are predicted to take (core/compiler/memory/memory_model.h).
struct MemoryReport {
  struct Tensor {
    std::string name;  // "conv1/Relu:0"
    double bytes = 0;
    bool received = false;  // true if the tensor comes from another task
  };
  struct Device {
    std::string device;
    double peak_bytes = 0;        // peak bytes of the step's tensors, in the predicted order
    double peak_own_bytes = 0;    // the peak without tensors from other tasks
    double worst_bytes = 0;       // an upper bound for all orders and numbers of threads
    double naive_bytes = 0;       // the peak of the step without changes for a limit
    double state_bytes = 0;       // variables that the step uses
    double fed_bytes = 0;         // feeds that enter the step on this device
    std::string peak_node;        // the node that runs at the peak
    std::vector<Tensor> largest;  // at the peak, largest first; at most kTensorsMax
  };
  static constexpr int kTensorsMax = 10;

  std::vector<Device> devices;  // in order of name; empty: nothing was predicted
  double limit_bytes = 0;       // CompileOptions::memory_limit
  // Changes of the step that the compiler made because of the limit.
  bool ordered = false;    // control edges were added that keep the order of nodes
  int num_recomputed = 0;  // nodes that run a second time
  int num_swapped = 0;     // tensors written to a file and read again
  // The name of a loop of the step; "" if there is none. A loop counts as one iteration.
  std::string loop;
};

struct CompileReport {
  struct PassTime {
    std::string pass;
    int64_t nanos = 0;
  };
  std::vector<PassTime> passes;  // those that ran, in order
  PlacementReport placement;
  MemoryReport memory;  // only if CompileOptions::predict or memory_limit is set
};

// Returns text for people: a line for each pass, lines for each group and its candidates, the time
// of the predicted step, and the text of the MemoryReport.
std::string ToString(const CompileReport& report);
// Returns text for people: a few lines for each device.
std::string ToString(const MemoryReport& report);

}  // namespace penstock
