// SPDX-License-Identifier: Apache-2.0
//
// Pass: one named step of the compiler; PassContext: everything that a pass reads and changes.
// compile.cc holds the table of passes, in the order in which they run.
#pragma once

#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/compiler/partition/partition.h"
#include "core/compiler/pass/compile_options.h"
#include "core/compiler/pass/compile_report.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

// The graph that a pass is given: the whole graph; the whole graph, with a device for each node; or
// the graph of one partition, for each partition in turn.
enum class Stage { kGraph, kPlaced, kPartition };

struct PassContext {
  // Returns the shapes of `graph` as it was when the pass first asked for them. Valid until the
  // pass ends.
  StatusOr<const ShapeMap*> Shapes() {
    if (!shapes.has_value()) {
      ASSIGN_OR_RETURN(shapes, InferShapes(*graph));
    }
    return &*shapes;
  }

  const Graph& program;  // the client's graph, which no pass changes
  const std::vector<DeviceInfo>& devices;
  const CompileOptions& options;
  CompileReport& report;
  Graph* graph;  // the graph that the pass changes; empty before "prune"
  // The measured costs; from the pass "place" on also estimates for every node of `graph`.
  CostTable costs;
  // By node id: how long the step takes from the node's start to its end, as predicted. The nodes
  // of a partition that wait for nothing start in descending order of urgency. Empty: in the
  // graph's order.
  std::vector<double> urgency = {};
  std::vector<Partition> partitions = {};  // in order of device name; empty before "partition"
  std::optional<ShapeMap> shapes = {};     // see Shapes
};

struct Pass {
  // A required pass runs for every step. An optional pass may be left out, and is left out unless
  // CompileOptions::optimize is set; the step then computes the same values.
  enum Need { kRequired, kOptional };

  const char* name;
  Stage stage;
  Need need;
  // Errors name the node. Leaves the graph valid.
  Status (*run)(PassContext& context);
};

}  // namespace penstock
