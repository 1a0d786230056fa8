// SPDX-License-Identifier: Apache-2.0
//
// Pass: one named step of the compiler; PassContext: everything that a pass reads and changes.
// core/compiler/compile.cc holds the table of passes, in the order in which they run.
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

// The graph that a pass gets. kGraph: the whole graph; kPlaced: the whole graph, in which each node
// has a device; kPartition: the graph of one partition, and the pass runs for each partition.
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
  Graph* graph;  // the graph that the pass changes; "prune" gets an empty one
  // The measured costs; from the pass "place" on also estimates for every node of `graph`.
  CostTable costs;
  // By node id: the predicted time from the node's start to the end of the step. The nodes of a
  // partition that have no inputs start in descending order of urgency or, if this is empty, in the
  // graph's order.
  std::vector<double> urgency = {};
  std::vector<Partition> partitions = {};  // in order of device name; empty before "partition"
  std::optional<ShapeMap> shapes = {};     // the result of Shapes(), if it was called
};

struct Pass {
  // A required pass runs for every step. An optional pass runs only if CompileOptions::optimize is
  // true and disabled_passes does not name it; without it the step computes the same values.
  enum Need { kRequired, kOptional };

  const char* name;
  Stage stage;
  Need need;
  // Errors name the node. Leaves the graph valid.
  Status (*run)(PassContext& context);
};

}  // namespace penstock
