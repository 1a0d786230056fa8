// SPDX-License-Identifier: Apache-2.0
//
// The training steps (forward and backward) of four networks as placement problems, each with the
// placement that a person would write. Times are those of a core with 50 GFLOP/s and 2 us per
// kernel, links carry 2 GB/s with 50 us of latency.
#pragma once

#include <string>
#include <vector>

#include "core/compiler/placement/problem.h"

namespace penstock {

struct RealisticProblem {
  std::string name;
  PlacementProblem problem;
  std::vector<int> by_hand;  // device by group
};

// Four layers of an LSTM, 16 time steps, 512 units, batches of 64. By hand: each device gets the
// same number of neighbouring layers.
RealisticProblem StackedLstm(int devices);
// Eight tables, three dense layers over their rows, and a wide part. By hand: the tables are
// distributed over the devices in turn, all other nodes are on the first.
RealisticProblem WideAndDeep(int devices);
// Eight convolutions and two dense layers, one after the other. By hand: all nodes on one device.
RealisticProblem Convnet(int devices);
// Four blocks of four branches of one to three convolutions. By hand: the branches are distributed
// over the devices in turn, all other nodes are on the first.
RealisticProblem Inception(int devices);

}  // namespace penstock
