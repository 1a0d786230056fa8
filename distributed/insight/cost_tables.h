// SPDX-License-Identifier: Apache-2.0
//
// The costs of steps as text, for a terminal, and as rows for a spreadsheet.
#pragma once

#include <string>

#include "proto/penstock/cost.pb.h"

namespace penstock {

// Returns a paragraph about one step: its measured and predicted time, its devices, the predicted
// memory of its tensors, and its `rows` most expensive nodes, each with its share of all nodes'
// time.
std::string CostText(const wire::StepCosts& step, size_t rows);
// Returns a line for each device and link of a session: its rates, and how they were obtained.
std::string RatesText(const wire::SessionCosts& session);
// Returns "12 % less than measured", or "" if fewer than 10 executions of the step were measured.
std::string DifferenceText(const wire::StepCosts& step);
// Returns a line for each node, the most expensive first, under a line of names:
// node,op,device,us,share,bytes,flops,measured.
std::string CostCsv(const wire::StepCosts& step);

}  // namespace penstock
