// SPDX-License-Identifier: Apache-2.0
//
// Compile: turns a client's graph into the partitions that tasks run: prunes it to feeds, fetches
// and targets, optimises it, places its nodes on devices and partitions it. Every session uses it,
// local and remote. Passes: the table of the passes that it runs.
//
// Compile does not change the input graph. It validates its copy after each pass. Thread-safe,
// because there is no state.
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
// pass/feeds.h lists the errors of feeds, fetches and targets. `report` may be null.
StatusOr<std::vector<Partition>> Compile(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                         const CompileOptions& options,
                                         CompileReport* report = nullptr);

// Returns the table of passes, in the order in which they run.
absl::Span<const Pass> Passes();
std::vector<std::string> PassNames();

// Returns OK if every name is that of an optional pass. Else returns an InvalidArgument that shows
// the first name which is not, and lists the passes that may be disabled.
Status CheckDisabledPasses(const std::vector<std::string>& names);

// Compiles with another table of passes. For tests of passes.
StatusOr<std::vector<Partition>> RunPasses(absl::Span<const Pass> passes, const Graph& graph,
                                           const std::vector<DeviceInfo>& devices,
                                           const CompileOptions& options, CompileReport* report);

}  // namespace penstock
