// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/report_prediction.h"

#include "core/compiler/placement/predicted_step.h"

namespace penstock {

void ReportPrediction(const PlacementProblem& problem, const std::vector<Node*>& order,
                      absl::Span<const int> device, const CostTable& costs,
                      PlacementReport* report) {
  const PredictedStep step = PredictStep(problem, device, UpwardRanks(problem));
  report->step_ns = step.end_ns;
  report->least_ns = LowerBoundNanos(problem);
  report->runs.clear();
  report->transfers.clear();
  for (size_t i = 0; i < order.size(); ++i) {
    const PredictedStep::Run& run = step.runs[i];
    const Node& node = *order[i];
    double bytes = 0;
    for (int out = 0; out < node.num_outputs(); ++out) bytes += costs.OutputBytes(node, out);
    report->runs.push_back({node.name(), run.device, run.lane, run.start_ns, run.end_ns,
                            node.op_name(), costs.Flops(node), bytes, costs.IsMeasured(node)});
  }
  for (const PredictedStep::Transfer& sent : step.transfers) {
    report->transfers.push_back({order[sent.node]->name(), sent.from, sent.to,
                                 problem.Bytes({sent.node, sent.output}), sent.start_ns,
                                 sent.end_ns});
  }
}

}  // namespace penstock
