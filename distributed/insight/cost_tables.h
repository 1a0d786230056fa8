// SPDX-License-Identifier: Apache-2.0
//
// The costs of steps as text, for a terminal, and as rows for a spreadsheet.
#pragma once

#include <string>

#include "proto/penstock/cost.pb.h"

namespace penstock {

// A paragraph about one step: how long it takes, measured and predicted; its devices and the memory
// that its tensors are predicted to take; its `rows`
// most expensive nodes, each with its share of all nodes' time.
std::string CostText(const wire::StepCosts& step, size_t rows);
// The rates of a session's devices and links, a line each, and how they were obtained.
std::string RatesText(const wire::SessionCosts& session);
// "12 % less than measured"; "" if the step was not measured often enough (10 executions).
std::string DifferenceText(const wire::StepCosts& step);
// A line for each node, the most expensive first, under a line of names:
// node,op,device,us,share,bytes,flops,measured.
std::string CostCsv(const wire::StepCosts& step);

}  // namespace penstock
