// SPDX-License-Identifier: Apache-2.0
#include "client/summary/summary_hook.h"

#include <algorithm>
#include <map>
#include <utility>

namespace penstock::client {

SummaryHook::SummaryHook(SummaryWriter& writer, const Program& program, const Options& options)
    : writer_(writer), program_(program), options_(options) {
  CHECK(options.every_steps >= 1);
}

Status SummaryHook::SessionReady(Session& session, int64_t global_step) {
  last_due_ = -1;
  timed_step_ = -1;
  if (!std::exchange(graph_written_, true)) {
    RETURN_IF_ERROR(writer_.AddGraph(program_.graph()));
  }
  // After a recovery, steps after `global_step` are repeated.
  return writer_.AddSession(SummaryWriter::SessionEvent::kStart, global_step + 1);
}

// Returns whether to write the summaries of this step. The first step of a session is due.
bool SummaryHook::IsDue(int64_t step) const {
  return last_due_ < 0 || step - last_due_ >= options_.every_steps;
}

Outputs SummaryHook::ExtraFetches(int64_t global_step) {
  const int64_t step = global_step + 1;
  if (!options_.summary.valid() || !IsDue(step)) return {};
  last_due_ = step;
  return {options_.summary};
}

void SummaryHook::Fetched(std::vector<Tensor> values) { fetched_ = std::move(values); }

Status SummaryHook::AfterStep(const StepResult& result, bool* stop) {
  const int64_t step = result.global_step;
  const std::vector<Tensor> fetched = std::exchange(fetched_, {});
  if (options_.summary.valid() ? fetched.empty() : !IsDue(step)) return OkStatus();
  last_due_ = std::max(last_due_, step);
  for (const Tensor& summary : fetched) {
    RETURN_IF_ERROR(writer_.AddSummary(summary.scalar<std::string>(), step));
  }
  std::map<std::string, double> scalars = result.measures;
  const int64_t now_ns = options_.env->NowNanos();
  if (timed_step_ >= 0 && step > timed_step_ && now_ns > timed_ns_) {
    scalars[kSpeedTag] =
        static_cast<double>(step - timed_step_) * 1e9 / static_cast<double>(now_ns - timed_ns_);
  }
  timed_step_ = step;
  timed_ns_ = now_ns;
  return scalars.empty() ? OkStatus() : writer_.AddScalars(scalars, step);
}

void SummaryHook::AfterSave(const std::string& checkpoint, int64_t global_step) {
  // If writing still fails later, the next written step returns the error.
  writer_.AddSession(SummaryWriter::SessionEvent::kCheckpoint, global_step, checkpoint)
      .IgnoreError();
}

Status SummaryHook::End(Session& session, int64_t global_step) {
  RETURN_IF_ERROR(writer_.AddSession(SummaryWriter::SessionEvent::kStop, global_step));
  // Ignores the error: the writer logs failed writes, and they do not end the training.
  writer_.Flush().IgnoreError();
  return OkStatus();
}

}  // namespace penstock::client
