// SPDX-License-Identifier: Apache-2.0
//
// CostNode: the measured costs of one node of a compiled step. It is a row of a CostGraphDef,
// which RunMetadata::cost_graph contains if SessionOptions::build_cost_model is set.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/step_stats.h"

namespace penstock {

struct CostNode {
  struct Input {
    int node = 0;  // an id
    int output = 0;
  };
  struct Output {
    int64_t bytes = 0;  // 0 if the tensor existed before the step (a variable or a constant)
    // The input whose buffer the output shares; -1: it has a buffer of its own.
    int alias_input = -1;
    DType dtype = DType::kInvalid;
    PartialShape shape;  // unknown if the output carried no value
  };
  std::string name, device;
  int id = 0;  // the node's position in the list
  std::vector<Input> inputs;
  std::vector<int> control_inputs;  // ids
  std::vector<Output> outputs;
  // The time of the longest execution in the step; 0 if the node did not run or was
  // not measured.
  int64_t nanos = 0;
  int64_t temporary_bytes = 0;  // peak memory of the node, without its outputs
  int64_t persistent_bytes = 0;
  bool is_send = false;
};

// Returns the nodes of all partitions, by device, with their costs from `stats`.
std::vector<CostNode> CostGraphOf(const std::vector<std::pair<std::string, Graph>>& partitions,
                                  const std::vector<DeviceStats>& stats);

}  // namespace penstock
