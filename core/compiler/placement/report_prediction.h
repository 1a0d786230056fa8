// SPDX-License-Identifier: Apache-2.0
//
// ReportPrediction: simulates a placed step and describes it in a PlacementReport.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/compiler/pass/compile_report.h"
#include "core/compiler/pass/cost_table.h"
#include "core/compiler/placement/problem.h"
#include "core/graph/graph.h"

namespace penstock {

// Sets the report's predicted time, runs and transfers. `order` has the nodes of the problem;
// `device` is by group. Sets least_ns to the lower bound for this problem.
void ReportPrediction(const PlacementProblem& problem, const std::vector<Node*>& order,
                      absl::Span<const int> device, const CostTable& costs,
                      PlacementReport* report);

}  // namespace penstock
