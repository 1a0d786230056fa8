// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/step_measuring.h"

#include <cstdlib>
#include <utility>

#include "distributed/master/health.h"
#include "distributed/session/cost_graph.h"

namespace penstock {

StepMeasuring::Reasons StepMeasuring::Begin(PreparedStep* step) const {
  Reasons reasons;
  if (step->placed != nullptr) reasons.sample = step->sampling.Begin(step->times);
  const int64_t before = step->executions.fetch_add(1, std::memory_order_relaxed);
  const int64_t interval = options_.build_cost_model;
  if (interval > 0) {
    const int64_t counted = before - options_.build_cost_model_after;
    reasons.cost_graph = counted >= 0 && (counted + 1) % interval == 0;
  }
  if (options_.recorder != nullptr) reasons.recording = options_.recorder->Take();
  if (reasons.recording != nullptr) [[unlikely]]
    reasons.begun_wall_ns = WallNanos();
  return reasons;
}

MeasuredCosts::ClocksAhead StepMeasuring::ClocksAhead() const {
  MeasuredCosts::ClocksAhead ahead;
  if (options_.health == nullptr) return ahead;
  for (const HealthMonitor::Peer& peer : options_.health->peers()) {
    // Ignores offsets within the error: tasks of one host have the same clock.
    if (!peer.clock.has_value() || std::abs(peer.clock->offset_ns) <= peer.clock->error_ns)
      continue;
    ahead[peer.task.name] = peer.clock->offset_ns;
  }
  return ahead;
}

Status StepMeasuring::End(const std::shared_ptr<PreparedStep>& step, const RunOptions& options,
                          Status status, const Reasons& reasons, StepStatsCollector* stats,
                          std::vector<Tensor>* outputs, RunMetadata* metadata) const {
  if (status.ok()) status = step->CheckFetches(*outputs);
  if (!status.ok()) [[unlikely]] {
    if (reasons.recording != nullptr) reasons.recording->Drop();
    outputs->clear();
    return status;
  }
  const int64_t ended_wall_ns = reasons.recording != nullptr ? WallNanos() : 0;
  if (metadata != nullptr) metadata->cost_graph.clear();
  std::vector<DeviceStats> taken;
  if (stats != nullptr) {
    taken = stats->Take();
    options_.graph->RecordCosts(taken, ClocksAhead());
    if (reasons.sample == StepSampling::Sample::kMeasureAndPlace) {
      options_.prepared->PlaceAgain(step, step->expected_shapes);
    }
    if (metadata != nullptr && options.trace) metadata->step_stats = taken;
  }
  if (reasons.recording != nullptr) {
    reasons.recording->Add({.session = options_.session,
                            .fetches = step->names().fetches,
                            .targets = step->names().targets,
                            .start_ns = reasons.begun_wall_ns,
                            .end_ns = ended_wall_ns,
                            .devices = taken});
  }
  if (metadata == nullptr) return OkStatus();
  if (reasons.cost_graph) {
    // If the graphs could not be compiled, the cost graph stays empty, and the step still succeeds.
    const auto graphs = options_.graph->KeptGraphs(*step);
    if (graphs != nullptr) metadata->cost_graph = CostGraphOf(*graphs, taken);
  }
  if (options.partition_graphs) {
    ASSIGN_OR_RETURN(metadata->partition_graphs, options_.graph->PartitionGraphs(*step));
  }
  return OkStatus();
}

}  // namespace penstock
