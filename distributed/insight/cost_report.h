// SPDX-License-Identifier: Apache-2.0
//
// Costs as messages: what a task tells of its sessions, and files of costs.
#pragma once

#include <string>

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

// Writes what was measured as a file of costs. FailedPrecondition if nothing was.
Status WriteCostFile(Env& env, const std::string& path,
                     const google::protobuf::RepeatedPtrField<wire::MeasuredNode>& nodes);
// InvalidArgument names the file and what is wrong: no JSON, another version, a device without a
// full name, a time or size that cannot be.
StatusOr<CostTable> ReadCostFile(Env& env, const std::string& path);

}  // namespace penstock
