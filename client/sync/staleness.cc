// SPDX-License-Identifier: Apache-2.0
#include "client/sync/staleness.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {

Staleness::Staleness(Program& program, Output train, SourceLine line) {
  const CallerLine source(program, line);
  const auto names = program.NameScope("staleness");
  const auto unordered = program.ClearControlDependencies();
  const auto device_scope = program.ColocateWith(program.GlobalStep().handle());
  // This read has no inputs, so it runs at the start of the step, like the reads of variables.
  const Output before = program.GlobalStep().Read();
  const auto after = program.ControlDependencies({train, before});
  const Output own = Constant(program, Tensor::Scalar<int64_t>(1));
  measure_ = program.GlobalStep().Read() - before - own;
}

Status Staleness::AfterStep(const StepResult& result, bool* stop) {
  const auto found = result.measures.find(kMeasure);
  if (found == result.measures.end()) {
    return FailedPrecondition("Staleness: the step has no measure '", kMeasure, "'");
  }
  const int64_t staleness = std::max<int64_t>(0, static_cast<int64_t>(found->second));
  ++counts_[staleness];
  if (writer_ == nullptr) return OkStatus();
  ++unwritten_[staleness];
  if (written_step_ < 0) written_step_ = result.global_step - 1;
  if (result.global_step - written_step_ < every_steps_) return OkStatus();
  return WriteHistogram(result.global_step);
}

Status Staleness::End(Session& session, int64_t global_step) {
  return unwritten_.empty() ? OkStatus() : WriteHistogram(global_step);
}

void Staleness::WriteHistograms(SummaryWriter& writer, int64_t every_steps) {
  writer_ = &writer;
  every_steps_ = every_steps;
}

Status Staleness::WriteHistogram(int64_t global_step) {
  RETURN_IF_ERROR(writer_->AddHistogram(kHistogramTag, unwritten_, global_step));
  unwritten_.clear();
  written_step_ = global_step;
  return OkStatus();
}

// Groups the counts by staleness into intervals, each twice as long as the one before.
std::string Staleness::Describe() const {
  int64_t total = 0;
  double sum = 0;
  std::map<int64_t, int64_t> by_begin;
  for (const auto& [staleness, count] : counts_) {
    int64_t begin = 0;
    while (staleness >= std::max<int64_t>(1, 2 * begin)) begin = std::max<int64_t>(1, 2 * begin);
    by_begin[begin] += count;
    total += count;
    sum += static_cast<double>(staleness * count);
  }
  if (total == 0) return "staleness: no updates";
  std::string text = absl::StrFormat("staleness of %d updates: mean %.1f", total,
                                     sum / static_cast<double>(total));
  const char* separator = ";";
  for (const auto& [begin, count] : by_begin) {
    const std::string last = begin < 2 ? "" : StrCat("-", 2 * begin - 1);
    absl::StrAppendFormat(&text, "%s %d%s: %.0f %%", separator, begin, last,
                          100.0 * static_cast<double>(count) / static_cast<double>(total));
    separator = ",";
  }
  return text;
}

}  // namespace penstock::client
