// SPDX-License-Identifier: Apache-2.0
//
// How a session tells what its steps take: measured, and predicted by what was measured.
#include <algorithm>
#include <utility>

#include "core/compiler/compile.h"
#include "distributed/master/master_session.h"

namespace penstock {

std::vector<MasterSession::Prepared> MasterSession::AllPrepared() {
  std::vector<Prepared> steps = cache_.List();
  MutexLock lock(callables_mu_);
  for (const auto& [id, callable] : callables_) steps.push_back(callable.step);
  return steps;
}

std::vector<MasterSession::StepCosts> MasterSession::PredictSteps(size_t steps_max) {
  struct Timed {
    Prepared step;
    uint64_t executions;
    int64_t median_ns;
    double total() const {
      return static_cast<double>(executions) * static_cast<double>(median_ns);
    }
  };
  std::vector<Timed> steps;
  for (const Prepared& step : AllPrepared()) {
    if (step->ready()) steps.push_back({step, step->times.count(), step->times.MedianNanos()});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Timed& a, const Timed& b) { return a.total() > b.total(); });
  if (steps.size() > steps_max) steps.resize(steps_max);
  const std::shared_ptr<const CostTable> costs = costs_.Get();
  std::vector<StepCosts> found;
  for (const auto& [prepared, executions, median_ns] : steps) {
    StepCosts step = {.names = prepared->names(), .executions = executions, .median_ns = median_ns};
    CompileReport report;
    auto options = OptionsOf(*prepared);
    step.status = options.status();
    if (options.ok()) {
      options->costs = costs.get();
      options->predict = true;
      step.status = CompileWith(*prepared, *std::move(options), &report).status();
    }
    step.predicted = std::move(report.placement);
    found.push_back(std::move(step));
  }
  return found;
}

}  // namespace penstock
