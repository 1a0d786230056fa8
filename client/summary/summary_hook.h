// SPDX-License-Identifier: Apache-2.0
//
// SummaryHook: writes the measures, the speed and the summaries of a training to an event file
// every `every_steps` steps, and the graph once. Use it on the chief only, unless each worker has
// its own folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/program.h"
#include "client/summary/summary_writer.h"
#include "client/training_hook.h"
#include "core/base/env.h"

namespace penstock::client {

struct SummaryHookOptions {
  int64_t every_steps = 100;  // in global steps; at least 1
  // A string scalar, such as Summaries::Merged; only the steps that are written compute it. If not
  // valid, no summaries are written.
  Output summary = {};
  Env* env = &Env::Real();  // its clock measures the speed
};

class SummaryHook : public TrainingHook {
 public:
  using Options = SummaryHookOptions;
  // The tag of the speed since the last written step, in global steps per second.
  static constexpr char kSpeedTag[] = "global_step/sec";

  // Borrows the writer and the program.
  SummaryHook(SummaryWriter& writer, const Program& program, const Options& options = {});

  Status SessionReady(Session& session, int64_t global_step) override;
  Outputs ExtraFetches(int64_t global_step) override;
  void Fetched(std::vector<Tensor> values) override;
  // An error of the writer ends the training: see SummaryWriter's give_up_seconds.
  Status AfterStep(const StepResult& result, bool* stop) override;
  void AfterSave(const std::string& checkpoint, int64_t global_step) override;
  Status End(Session& session, int64_t global_step) override;

 private:
  bool IsDue(int64_t step) const;

  SummaryWriter& writer_;
  const Program& program_;
  const Options options_;
  bool graph_written_ = false;
  int64_t last_due_ = -1;                   // the last step that was written or is due; -1: none
  std::vector<Tensor> fetched_;             // the summaries of the step that has just ended
  int64_t timed_step_ = -1, timed_ns_ = 0;  // the step and time from which the speed is measured
};

}  // namespace penstock::client
