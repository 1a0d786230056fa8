// SPDX-License-Identifier: Apache-2.0
//
// Compile: the one road from a client's graph to what tasks run: prune to feeds, fetches and
// targets; optimise; place; partition. Used by every session, local and remote.
//
// The input graph is not changed. The graph is validated after each pass. Thread-safe (no state).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/compiler/partition.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

class CostModel;
class Env;
class Scheduler;

struct CompileOptions {
  std::vector<TensorName> feeds;
  std::vector<TensorName> fetches;
  std::vector<std::string> targets;   // node names
  bool allow_soft_placement = false;  // a device constraint that cannot be met is relaxed
  bool optimize = true;               // constant folding, common subexpressions
  // What kernels of constants that are folded run on. Borrowed; needed where `optimize` is set.
  Env* env = nullptr;
  Scheduler* threads = nullptr;
  // Feeds come and fetches leave one by one while the step runs: by its rendezvous, as PartialFeed
  // and PartialFetch name them, from and to the client's device itself.
  bool partial_run = false;
  // The device that feeds enter and fetches leave by: the client's side of the master's task.
  DeviceName client_device;
  const CostModel* cost_model = nullptr;  // null: static estimates
  // Called with the graph after each pass, by the pass's name ("prune", "place", ...).
  std::function<void(string_view pass, const Graph&)> dump = nullptr;
};

// Partitions in order of device name. Errors name the feed, fetch, target or node:
// NotFound "FeedInputs: unable to find feed output X:0", "FetchOutputs node X:0: not found",
// "PruneForTargets: Some target nodes not found: ...".
StatusOr<std::vector<Partition>> Compile(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                         const CompileOptions& options);

// What the i-th feed and fetch of a partial run are called in the rendezvous
// (RendezvousKey::tensor, with the client's device at both ends, incarnation 0).
std::string PartialFeed(int index);
std::string PartialFetch(int index);

// For each fetch, in order, which feeds (by index) it needs. Errors as Compile's.
StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const Graph& graph,
                                                       const CompileOptions& options);

// The names that `dump` sees, in order.
std::vector<std::string> PassNames();

}  // namespace penstock
