// SPDX-License-Identifier: Apache-2.0
//
// StepMeasuring: decides which executions of one session's steps are measured although the client
// has not asked for it. It uses the measurements as costs for later compilations, for cost graphs,
// for the operator's recording, and to place steps again.
//
// Thread-safe; it has no lock of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/runtime/step_stats.h"
#include "distributed/master/auto_placement.h"
#include "distributed/master/measured_costs.h"
#include "distributed/master/prepared_step.h"
#include "distributed/master/prepared_steps.h"
#include "distributed/master/session_graph.h"
#include "distributed/master/step_recorder.h"
#include "distributed/session/session.h"

namespace penstock {

class HealthMonitor;

class StepMeasuring {
 public:
  struct Options {
    std::string session;           // its handle
    int64_t build_cost_model = 0;  // this and the following: as in SessionOptions
    int64_t build_cost_model_after = 0;
    Env* env = nullptr;
    HealthMonitor* health = nullptr;                   // null: all tasks have the master's clock
    std::shared_ptr<StepRecorder> recorder = nullptr;  // null: steps are not recorded
    std::shared_ptr<SessionGraph> graph;
    std::shared_ptr<PreparedSteps> prepared;
  };
  // Why an execution is measured.
  struct Reasons {
    StepSampling::Sample sample = StepSampling::Sample::kNone;
    bool cost_graph = false;  // fill RunMetadata::cost_graph
    std::shared_ptr<StepRecorder::Recording> recording = nullptr;
    int64_t begun_wall_ns = 0;  // set only if there is a recording
    bool any() const {
      return cost_graph || recording != nullptr || sample != StepSampling::Sample::kNone;
    }
  };

  explicit StepMeasuring(Options options) : options_(std::move(options)) {}

  // Counts an execution that begins, and returns the reasons to measure it, if there are any.
  Reasons Begin(PreparedStep* step) const;
  // Uses the measurements of an execution that has ended. `stats`: null unless it was measured.
  // Fills `metadata`, unless null, with what `options` and `reasons` ask for. Returns `status`, or
  // an error of the fetched values; `outputs` are then cleared.
  Status End(const std::shared_ptr<PreparedStep>& step, const RunOptions& options, Status status,
             const Reasons& reasons, StepStatsCollector* stats, std::vector<Tensor>* outputs,
             RunMetadata* metadata) const;

 private:
  MeasuredCosts::ClocksAhead ClocksAhead() const;
  int64_t WallNanos() const { return options_.env->WallMicros() * 1'000; }

  const Options options_;
};

}  // namespace penstock
