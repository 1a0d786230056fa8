// SPDX-License-Identifier: Apache-2.0
//
// Converts costs to and from messages: the cost report of a task's sessions, and cost files.
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

// Reports the measurements of the sessions whose master is `task`, and predicts the costs of at
// most `steps_max` steps of each session. Compiles each predicted step, which takes as long as
// preparing it. Calls `goes_on` before each step; once that returns false, predicts no more steps.
// REQUIRES: `task` has started.
wire::CostReport ReportCosts(Task& task, size_t steps_max, absl::FunctionRef<bool()> goes_on);

// Adds the predicted costs to `*step`. REQUIRES: `predicted` comes from a compilation with
// CompileOptions::predict.
void AddPrediction(const PlacementReport& predicted, wire::StepCosts* step);

void AddPrediction(const MemoryReport& predicted, wire::StepCosts* step);

// Writes a cost file. `measured` has the measured nodes, and the devices on which they were
// measured; this function adds the version fields. FailedPrecondition if nothing was measured.
Status WriteCostFile(Env& env, const std::string& path, wire::CostFile measured);

struct SavedCosts {
  CostTable table;
  std::vector<DeviceInfo> devices;  // names and rates of the devices in the file
};
// Reads a cost file. InvalidArgument names the file and what is wrong: it is not JSON, has another
// version, a device without a full name, or an impossible time, size or rate.
StatusOr<SavedCosts> ReadCostFile(Env& env, const std::string& path);
// Sets the rates of each device to those of the file's device of the same name, or else to those of
// the file's first device of the same type.
void UseRates(const SavedCosts& costs, std::vector<DeviceInfo>* devices);

}  // namespace penstock
