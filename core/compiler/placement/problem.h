// SPDX-License-Identifier: Apache-2.0
//
// PlacementProblem: the part of a graph that matters for placement once constraints, kernels and
// groups are known: nodes that take time, edges that carry bytes, and the devices that each group
// may choose from. The search and the prediction of a step work on it, so that they can be tested
// without graphs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/op/device_name.h"

namespace penstock {

struct PlacementProblem {
  struct Device {
    int task = 0;   // devices of one task share its links
    int kind = 0;   // devices of one kind take equal times, except for DeviceTimes
    int lanes = 1;  // number of nodes that can run at once
    LinkRates link_in_task = {};
    LinkRates link_to_tasks = {};
  };
  // An input of a node: the output, or the end, of another node for which it waits.
  struct Input {
    int node = 0;     // the node waited for; its number is smaller than that of the waiting node
    int output = -1;  // in `output_bytes`; negative: a control edge
  };
  // The time of a node on a device that differs from the other devices of its kind.
  struct DeviceTime {
    int device = 0;
    double nanos = 0;
  };

  int num_nodes() const { return static_cast<int>(group.size()); }
  int num_groups() const { return static_cast<int>(candidates.size()); }

  // Adds a node whose inputs all come before it.
  void AddNode(int group_of_node, const std::vector<Input>& its_inputs,
               const std::vector<double>& nanos_by_kind,
               const std::vector<DeviceTime>& device_times = {});
  double Nanos(int node, int device) const;
  double Bytes(const Input& input) const {
    return input.output < 0 ? 0 : output_bytes[input.output];
  }
  // Returns the link from one device to another. REQUIRES: from != to. A link between tasks is
  // taken from `links`; if `links` is empty, or for two devices of one task, it follows from the
  // rates of the two devices.
  LinkRates Link(int from, int to) const;
  // Returns when a step that the master starts at time 0 starts in the device's task: after one
  // message, unless the task is the master's own. The report of the step's end takes as long.
  double StartNanos(int device) const {
    return devices[device].task == master_task ? 0 : devices[device].link_to_tasks.latency_ns;
  }

  std::vector<Device> devices;
  int master_task = 0;
  int num_tasks = 0, num_kinds = 0;
  std::vector<LinkRates> links = {};  // index: from_task * num_tasks + to_task; empty: not measured
  std::vector<std::vector<int>> candidates;  // by group, in order of preference; never empty
  // By node, in an order in which edges go forward.
  std::vector<int> group;
  std::vector<int> first_input = {0};        // index in `inputs`; one more entry than nodes
  std::vector<int> first_device_time = {0};  // index in `device_times`, as first_input
  std::vector<double> nanos;                 // by node, then by kind of device
  std::vector<Input> inputs;
  std::vector<DeviceTime> device_times;
  std::vector<double> output_bytes;
};

// Returns, by node, how long a step takes from the node's start to the step's end, on average over
// the devices that each group may choose from (the upward rank of HEFT: Topcuoglu et al., 2002).
// Nodes on the critical path have the largest ranks.
std::vector<double> UpwardRanks(const PlacementProblem& problem);

// Returns a lower bound of the step's time under any placement: the longest path with each node on
// its quickest device or, if it is larger, the quickest work spread evenly over all lanes.
double LowerBoundNanos(const PlacementProblem& problem);

}  // namespace penstock
