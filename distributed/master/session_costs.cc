// SPDX-License-Identifier: Apache-2.0
//
// The methods of MasterSession that report the costs of its steps: measured, and predicted from
// measurements.
#include <algorithm>
#include <utility>

#include "distributed/master/master_session.h"

namespace penstock {

std::vector<MasterSession::StepCosts> MasterSession::PredictSteps(
    size_t steps_max, absl::FunctionRef<bool()> goes_on) {
  struct Timed {
    Prepared step;
    int64_t executions;  // including those that were not timed
    uint64_t timed;
    int64_t median_ns;
    std::pair<double, int64_t> rank() const {
      return {static_cast<double>(executions) * static_cast<double>(median_ns), executions};
    }
  };
  std::vector<Timed> steps;
  for (const Prepared& step : prepared_->List()) {
    if (!step->ready()) continue;
    steps.push_back({step, step->executions.load(std::memory_order_relaxed), step->times.count(),
                     step->times.MedianNanos()});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Timed& a, const Timed& b) { return a.rank() > b.rank(); });
  if (steps.size() > steps_max) steps.resize(steps_max);
  const std::shared_ptr<const CostTable> costs = graph_->costs();
  std::vector<StepCosts> found;
  for (const auto& [prepared, executions, timed, median_ns] : steps) {
    // Checks before each step, because a prediction takes as long as preparing the step.
    if (!goes_on() || !steps_->CheckOpen().ok()) break;
    StepCosts step = {.names = prepared->names(), .executions = timed, .median_ns = median_ns};
    CompileReport report;
    step.status = graph_->Predict(*prepared, costs.get(), &report);
    step.predicted = std::move(report.placement);
    step.memory = std::move(report.memory);
    found.push_back(std::move(step));
  }
  return found;
}

}  // namespace penstock
