// SPDX-License-Identifier: Apache-2.0
//
// CostNode: what one node of a compiled step was measured to take: the rows of a CostGraphDef, as
// RunMetadata::cost_graph reports them when SessionOptions::build_cost_model asks for it.
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
    int64_t bytes = 0;     // 0 if the tensor was there before: of a variable or a constant
    int alias_input = -1;  // the input whose buffer it shares; -1: its own
    DType dtype = DType::kInvalid;
    PartialShape shape;  // unknown if the output carried no value
  };
  std::string name, device;
  int id = 0;  // its position in the list
  std::vector<Input> inputs;
  std::vector<int> control_inputs;  // ids
  std::vector<Output> outputs;
  // The longest execution in the step; 0 if the node did not run or was not measured.
  int64_t nanos = 0;
  int64_t temporary_bytes = 0;  // the most that it held beside its outputs
  int64_t persistent_bytes = 0;
  bool is_send = false;
};

// Returns the nodes of all partitions, by device, with what `stats` say of them.
std::vector<CostNode> CostGraphOf(const std::vector<std::pair<std::string, Graph>>& partitions,
                                  const std::vector<DeviceStats>& stats);

}  // namespace penstock
