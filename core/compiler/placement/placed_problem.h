// SPDX-License-Identifier: Apache-2.0
//
// PlacedProblem: the problem (problem.h) of a graph whose nodes have devices already: each node is
// a group of its own with one candidate. What passes after "place" predict steps with.
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
  std::vector<Node*> order;       // by node of the problem
  std::vector<int> device;        // by node of the problem: in the devices given
  std::vector<int> index;         // by node id: in the problem; -1: removed
  std::vector<int> first_output;  // by node of the problem: in its output_bytes
};

// REQUIRES that every node has an assigned device among `devices`.
StatusOr<PlacedProblem> DescribePlaced(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                       const CostTable& costs, const DeviceName& client_device);

// Fills in PlacementProblem::links from what was measured; leaves it empty if nothing was.
// REQUIRES the problem's devices and number of tasks.
void AddMeasuredLinks(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                      PlacementProblem* problem);

// Predicts the most bytes that the outputs of nodes take on each device at a time. An output takes
// its bytes from its node's start until its last reader there has ended and its last transfer has;
// where it is received, from the start of the transfer. An output that only passes a value on, or
// reads a variable, shares that buffer and takes no bytes of its own.
std::vector<double> PeakBytes(const PlacedProblem& placed, const PredictedStep& step);

}  // namespace penstock
