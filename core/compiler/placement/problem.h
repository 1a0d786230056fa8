// SPDX-License-Identifier: Apache-2.0
//
// PlacementProblem: the data on which the search for a placement and the prediction of a step work:
// nodes with their times, edges with their bytes, and the devices on which each group of nodes may
// run. It is separate from Graph, so that tests need no graphs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/op/device_name.h"

namespace penstock {

struct PlacementProblem {
  struct Device {
    int task = 0;   // devices of one task share its links
    int kind = 0;   // a node takes equal times on devices of one kind, except for DeviceTimes
    int lanes = 1;  // number of nodes that can run at once
    LinkRates link_in_task = {};
    LinkRates link_to_tasks = {};
  };
  // An input of a node: an output of another node, or a control edge from it.
  struct Input {
    int node = 0;     // the other node; its number is smaller than that of the node with the input
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
  // Returns the rates of the link from one device to another. REQUIRES: from != to. For devices of
  // different tasks, returns the entry of `links`. If `links` is empty, or for two devices of one
  // task, computes the rates from those of the two devices.
  LinkRates Link(int from, int to) const;
  // Returns the time at which a step starts in the device's task, if the master starts it at time
  // 0: after one message, or at once if the task is the master's own. The message that reports the
  // end of the step takes the same time.
  double StartNanos(int device) const {
    return devices[device].task == master_task ? 0 : devices[device].link_to_tasks.latency_ns;
  }

  std::vector<Device> devices;
  int master_task = 0;
  int num_tasks = 0, num_kinds = 0;
  std::vector<LinkRates> links = {};  // index: from_task * num_tasks + to_task; empty: not measured
  std::vector<std::vector<int>> candidates;  // by group, in order of preference; never empty
  // By node. A node's inputs have smaller numbers than the node.
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

// Returns a lower bound of the step's time with any placement. It is the maximum of two bounds: the
// longest path with each node on its fastest device, and the total of the nodes' fastest times
// divided by the number of all lanes.
double LowerBoundNanos(const PlacementProblem& problem);

}  // namespace penstock
