// SPDX-License-Identifier: Apache-2.0
//
// Compile: turns a client's graph into the partitions that tasks run: prune to feeds, fetches and
// targets; optimise; place; partition. Every session uses it, local and remote.
//
// The input graph is not changed. The graph is validated after each pass. Thread-safe (no state).
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/compiler/partition/partition.h"
#include "core/compiler/pass/compile_options.h"
#include "core/compiler/pass/compile_report.h"
#include "core/compiler/pass/feeds.h"
#include "core/compiler/pass/pass.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

// Returns partitions in order of device name. Errors name the feed, fetch, target, node or pass;
// for errors of feeds, fetches and targets see feeds.h. `report` may be null.
StatusOr<std::vector<Partition>> Compile(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                         const CompileOptions& options,
                                         CompileReport* report = nullptr);

// Returns the table of passes, in the order in which they run.
absl::Span<const Pass> Passes();
std::vector<std::string> PassNames();

// Returns OK if every name is that of an optional pass. Else InvalidArgument names the first other
// name, and lists the passes that may be disabled.
Status CheckDisabledPasses(const std::vector<std::string>& names);

// Compiles with another table of passes. For tests of passes.
StatusOr<std::vector<Partition>> RunPasses(absl::Span<const Pass> passes, const Graph& graph,
                                           const std::vector<DeviceInfo>& devices,
                                           const CompileOptions& options, CompileReport* report);

}  // namespace penstock
