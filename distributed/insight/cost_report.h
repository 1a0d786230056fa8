// SPDX-License-Identifier: Apache-2.0
//
// Costs as messages: what a task tells of its sessions, and files of costs.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/env.h"
#include "core/compiler/pass/compile_report.h"
#include "core/compiler/pass/cost_table.h"
#include "distributed/task/task.h"
#include "proto/penstock/cost.pb.h"

namespace penstock {

// Reports what the sessions whose master is `task` have measured, and predicts at most `steps_max`
// steps of each. Compiles them: it takes as long as preparing them. Once `goes_on` is false, no
// more steps are predicted; it is asked before each. REQUIRES that `task` has started.
wire::CostReport ReportCosts(Task& task, size_t steps_max, absl::FunctionRef<bool()> goes_on);

// Adds the predicted step. REQUIRES a report that CompileOptions::predict asked for.
void AddPrediction(const PlacementReport& predicted, wire::StepCosts* step);

void AddPrediction(const MemoryReport& predicted, wire::StepCosts* step);

// Writes what was measured as a file of costs: `measured` has nodes, and the devices that they were
// measured on. The function adds the versions. FailedPrecondition if nothing was measured.
Status WriteCostFile(Env& env, const std::string& path, wire::CostFile measured);

struct SavedCosts {
  CostTable table;
  std::vector<DeviceInfo> devices;  // names and rates of those that the file has
};
// InvalidArgument names the file and what is wrong: no JSON, another version, a device without a
// full name, a time, size or rate that cannot be.
StatusOr<SavedCosts> ReadCostFile(Env& env, const std::string& path);
// Gives devices the rates of a file's devices: those of the same name, or else of the first of the
// same type.
void UseRates(const SavedCosts& costs, std::vector<DeviceInfo>* devices);

}  // namespace penstock
