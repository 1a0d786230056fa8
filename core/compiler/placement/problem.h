// SPDX-License-Identifier: Apache-2.0
//
// PlacementProblem: what is left of a graph once constraints, kernels and groups are known: nodes
// that take time, edges that carry bytes, and the devices that each group may choose from. The
// search and the prediction of a step work on it, so that they can be tested without graphs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/op/device_name.h"

namespace penstock {

struct PlacementProblem {
  struct Device {
    int task = 0;   // devices of one task share its links
    int kind = 0;   // devices of one kind take the same time, but for exceptions
    int lanes = 1;  // nodes that run at once
    LinkRates link_in_task = {};
    LinkRates link_to_tasks = {};
  };
  // An output, or the end of a node, for which another node waits.
  struct Input {
    int node = 0;     // comes before the node that waits
    int output = -1;  // in `output_bytes`; negative: a control edge
  };
  // The time on a device that differs from others of its kind.
  struct Exception {
    int device = 0;
    double nanos = 0;
  };

  int num_nodes() const { return static_cast<int>(group.size()); }
  int num_groups() const { return static_cast<int>(candidates.size()); }

  // Adds a node whose inputs all come before it.
  void AddNode(int group_of_node, const std::vector<Input>& its_inputs,
               const std::vector<double>& nanos_by_kind,
               const std::vector<Exception>& exceptions = {});
  double Nanos(int node, int device) const;
  double Bytes(const Input& input) const {
    return input.output < 0 ? 0 : output_bytes[input.output];
  }
  // The link from one device to another; not asked for from == to. Between tasks it is the one in
  // `links`, if that is not empty; else it follows from the two devices.
  LinkRates Link(int from, int to) const;
  // When a step that the master starts at 0 starts in the device's task, and how long its end takes
  // to be known: one message each, but for the master's own task.
  double StartNanos(int device) const {
    return devices[device].task == master_task ? 0 : devices[device].link_to_tasks.latency_ns;
  }

  std::vector<Device> devices;
  int master_task = 0;
  int num_tasks = 0, num_kinds = 0;
  std::vector<LinkRates> links = {};  // by task from * num_tasks + to; empty: none was measured
  std::vector<std::vector<int>> candidates;  // by group, in order of preference; never empty
  // By node, in an order in which edges go forward.
  std::vector<int> group;
  std::vector<int> first_input = {0};      // in `inputs`; one more than nodes
  std::vector<int> first_exception = {0};  // as first_input
  std::vector<double> nanos;               // by node, by kind
  std::vector<Input> inputs;
  std::vector<Exception> exceptions;
  std::vector<double> output_bytes;
};

// By node: how long a step takes from the node's start to its end, on average over the devices that
// each group may choose from (the upward rank of HEFT: Topcuoglu et al., 2002). Nodes on the
// critical path have the largest.
std::vector<double> UpwardRanks(const PlacementProblem& problem);

// No placement of the problem ends sooner: the longest path with each node on its quickest device,
// or the quickest work spread evenly over all lanes.
double LowerBoundNanos(const PlacementProblem& problem);

}  // namespace penstock
