// SPDX-License-Identifier: Apache-2.0
//
// CompileOptions: the feeds, fetches and targets of a step, and the rules by which the compiler
// compiles it.
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

// Names of devices, by name of node.
using DeviceByNode = absl::flat_hash_map<std::string, std::string>;

struct CompileOptions {
  std::vector<TensorName> feeds;
  std::vector<TensorName> fetches;
  std::vector<std::string> targets;  // node names
  // The shapes that feeds are expected to have, by feed. Only cost estimates use them: the compiled
  // step takes feeds of any shape. Empty: not known.
  std::vector<PartialShape> feed_shapes = {};
  bool allow_soft_placement = false;  // if true, a device constraint that cannot be met is relaxed
  bool optimize = true;               // false: only the required passes run
  // Optional passes that are left out, by name. InvalidArgument if there is no such pass, or if it
  // is a required pass.
  std::vector<std::string> disabled_passes = {};
  // If true, floats are sent between tasks as bfloat16, unless a consumer stores them. The comment
  // of CompressTransfers (core/compiler/passes/passes.h) has the exact rules.
  bool bfloat16_transfers = false;
  // The maximum of bytes that the tensors of a step may take on one device; 0: no limit. Variables
  // and feeds do not count. If the predicted bytes are near or above the limit, the compiler
  // changes the step so that it takes less memory. If that is not enough, it returns
  // ResourceExhausted with a list of the tensors that do not fit.
  int64_t memory_limit = 0;
  // The clock for the times of the passes, also used by the kernels that fold constants. Borrowed;
  // must not be null.
  Env* env = nullptr;
  Scheduler* threads = nullptr;
  // If true (partial run), the step receives its feeds and sends its fetches one by one while it
  // runs, through its rendezvous. PartialFeed and PartialFetch (feeds.h) return the names of the
  // tensors in the rendezvous, where both ends are the client's device.
  bool partial_run = false;
  // The device on which feeds enter and fetches leave the step: a device of the master's task.
  DeviceName client_device;
  // If true, a node that names no job may run on any task; else only on the client's task.
  bool any_task = false;
  // The devices of nodes that hold state and could run on several devices. Borrowed. Null: each
  // such node goes to the first device that it may use.
  const DeviceByNode* state_devices = nullptr;
  // An earlier placement of this step, by the first node of each group
  // (PlacementReport::Group::node). The placer keeps it unless the predicted step with another
  // placement is a tenth faster. Borrowed; may be null.
  const DeviceByNode* placed_before = nullptr;
  // If true, CompileReport::placement also has the predicted step (how long it takes, which node
  // runs when), and CompileReport::memory the memory that it takes.
  bool predict = false;
  // If `predict`, receives the placed step, for predictions of other clusters
  // (core/compiler/placement/predicted_cluster.h). Borrowed; may be null.
  PlacedStep* describe = nullptr;
  // Measured costs of earlier steps. Borrowed. Null: static estimates only.
  const CostTable* costs = nullptr;
  // Called with the graph after each pass and the pass's name ("prune", "place", ...). After
  // "partition" and later passes, called once for each partition.
  std::function<void(string_view pass, const Graph&)> dump = nullptr;
};

}  // namespace penstock
