// SPDX-License-Identifier: Apache-2.0
//
// CompileOptions: what a step asks of the compiler, and under which rules.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

class CostTable;
class Env;
class Scheduler;
struct PlacedStep;

// Devices by the names of nodes.
using DeviceByNode = absl::flat_hash_map<std::string, std::string>;

struct CompileOptions {
  std::vector<TensorName> feeds;
  std::vector<TensorName> fetches;
  std::vector<std::string> targets;  // node names
  // The shapes that feeds are expected to have, by feed: what estimates begin with. The compiled
  // step takes feeds of any shape. Empty: not known.
  std::vector<PartialShape> feed_shapes = {};
  bool allow_soft_placement = false;  // a device constraint that cannot be met is relaxed
  bool optimize = true;               // false: only the passes run without which no step does
  // Optional passes that are left out, by name. InvalidArgument if there is no such pass, or if
  // steps need it.
  std::vector<std::string> disabled_passes = {};
  // Floats that travel between tasks are rounded to bfloat16 on the way, unless something keeps
  // them: CompressTransfers (core/compiler/passes/passes.h) has the rules.
  bool bfloat16_transfers = false;
  // The most bytes that the tensors of a step may take on one device; 0: no limit. Variables and
  // feeds do not count. If the prediction is above it, the step is changed so that it takes less;
  // RESOURCE_EXHAUSTED with a list of what does not fit if that is not enough.
  int64_t memory_limit = 0;
  // The clock that times the passes, and what kernels of constants that are folded run on.
  // Borrowed; needed.
  Env* env = nullptr;
  Scheduler* threads = nullptr;
  // Feeds come and fetches leave one by one while the step runs: by its rendezvous, as PartialFeed
  // and PartialFetch name them, from and to the client's device itself.
  bool partial_run = false;
  // The device that feeds enter and fetches leave by: the client's side of the master's task.
  DeviceName client_device;
  // A node that names no job may run on any task; else on the client's only.
  bool any_task = false;
  // The devices of nodes that hold state and leave a choice. Borrowed. Null: each such node goes to
  // the first device that it may use.
  const DeviceByNode* state_devices = nullptr;
  // An earlier placement of this step, by the first node of each group
  // (PlacementReport::Group::node): it stays unless another is predicted to be a tenth quicker.
  // Borrowed; may be null.
  const DeviceByNode* placed_before = nullptr;
  // CompileReport::placement also tells the predicted step: how long it takes, which node runs
  // when; and CompileReport::memory what memory it takes.
  bool predict = false;
  // If `predict`: takes what was placed, for predictions of other clusters
  // (core/compiler/placement/predicted_cluster.h). Borrowed; may be null.
  PlacedStep* describe = nullptr;
  // Measured costs of earlier steps. Borrowed. Null: static estimates only.
  const CostTable* costs = nullptr;
  // Called with the graph after each pass, by the pass's name ("prune", "place", ...); from
  // "partition" on once for each partition.
  std::function<void(string_view pass, const Graph&)> dump = nullptr;
};

}  // namespace penstock
