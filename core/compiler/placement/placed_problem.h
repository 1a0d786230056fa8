// SPDX-License-Identifier: Apache-2.0
//
// PlacedProblem: the problem (problem.h) of a graph whose nodes have devices already: each node is
// a group of its own with one candidate. Passes after "place" predict steps, and the bytes of
// outputs on each device, with it.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/pass/cost_table.h"
#include "core/compiler/placement/predicted_step.h"
#include "core/compiler/placement/problem.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

struct PlacedProblem {
  PlacementProblem problem;
  std::vector<Node*> order;  // by node of the problem
  std::vector<int> device;   // by node of the problem: index in `devices`
  std::vector<int> index;    // by node id: the node of the problem; -1 for a removed node
  // By node of the problem: index of the node's first output in the problem's output_bytes.
  std::vector<int> first_output;
};

// Returns the graph as a problem. REQUIRES: every node has an assigned device among `devices`.
StatusOr<PlacedProblem> DescribePlaced(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                       const CostTable& costs, const DeviceName& client_device);

// Fills in PlacementProblem::links from measurements; leaves it empty if no link was measured.
// REQUIRES: the problem's devices and number of tasks are set.
void AddMeasuredLinks(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                      PlacementProblem* problem);

// Returns the predicted peak of the bytes that the outputs of nodes take on each device. On its
// node's device, an output takes memory from the node's start until its last reader and its last
// transfer have ended. On a device that receives it, it takes memory from the start of the transfer
// until its last reader there has ended. An output that only passes a value on, or reads a
// variable, shares an existing buffer and takes no bytes of its own.
std::vector<double> PeakBytes(const PlacedProblem& placed, const PredictedStep& step);

}  // namespace penstock
