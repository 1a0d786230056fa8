// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/step_recorder.h"

#include <utility>

namespace penstock {
namespace {

int64_t RowsOf(const RecordedStep& step) {
  int64_t rows = 0;
  for (const DeviceStats& device : step.devices) rows += static_cast<int64_t>(device.nodes.size());
  return rows;
}

int64_t BytesOf(const RecordedStep& step) {
  size_t bytes = sizeof(step);
  for (const DeviceStats& device : step.devices) {
    for (const NodeStats& node : device.nodes) {
      bytes += sizeof(node) + node.node.size() + node.op.size() +
               node.inputs.size() * sizeof(NodeStats::Input) +
               node.outputs.size() * sizeof(NodeStats::Out) +
               node.memory.size() * sizeof(NodeStats::Memory);
    }
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

bool StepRecorder::Recording::Take() {
  MutexLock lock(mu_);
  if (ended_ || under_way_ == kUnderWayMax) return false;
  ++under_way_;
  ++begun_;
  return true;
}

void StepRecorder::Recording::Add(RecordedStep step) {
  const int64_t rows = RowsOf(step), bytes = BytesOf(step);
  MutexLock lock(mu_);
  --under_way_;
  if (ended_) return;
  if (rows_ + rows > limits_.rows) {
    return End(StrCat("more than ", limits_.rows, " nodes ran"));
  }
  if (bytes_ + bytes > limits_.bytes) {
    return End(StrCat("the record takes more than ", limits_.bytes >> 20, " MiB"));
  }
  rows_ += rows;
  bytes_ += bytes;
  steps_.push_back(std::move(step));
  if (static_cast<int64_t>(steps_.size()) == limits_.steps) End("");
}

void StepRecorder::Recording::Drop() {
  MutexLock lock(mu_);
  --under_way_;
}

bool StepRecorder::Recording::Wait(int64_t deadline_ns) {
  MutexLock lock(mu_);
  return changed_.WaitUntil(mu_, deadline_ns,
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_; });
}

void StepRecorder::Recording::Cancel() {
  MutexLock lock(mu_);
  if (!ended_) End("it was cancelled");
}

void StepRecorder::Recording::End(const std::string& why) {
  ended_ = true;
  cut_ = why;
  changed_.NotifyAll();
}

int64_t StepRecorder::Recording::under_way() const {
  MutexLock lock(mu_);
  return under_way_;
}

int64_t StepRecorder::Recording::begun() const {
  MutexLock lock(mu_);
  return begun_;
}

std::string StepRecorder::Recording::cut() const {
  MutexLock lock(mu_);
  return cut_;
}

std::vector<RecordedStep> StepRecorder::Recording::TakeSteps() {
  MutexLock lock(mu_);
  ended_ = true;
  return std::exchange(steps_, {});
}

StatusOr<std::shared_ptr<StepRecorder::Recording>> StepRecorder::Begin(const Limits& limits) {
  if (limits.steps < 1 || limits.steps > kStepsMax) {
    return InvalidArgument("a trace of ", limits.steps, " steps: expected 1 to ", kStepsMax);
  }
  MutexLock lock(mu_);
  if (recording_ != nullptr) {
    return ResourceExhausted("the steps of this task are being traced already: try again when ",
                             "that trace has ended");
  }
  recording_.reset(new Recording(limits, threads_));
  records_ = true;
  return recording_;
}

void StepRecorder::End(const std::shared_ptr<Recording>& recording) {
  MutexLock lock(mu_);
  if (recording_ != recording) return;
  recording_ = nullptr;
  records_ = false;
}

std::shared_ptr<StepRecorder::Recording> StepRecorder::TakeSlow() {
  MutexLock lock(mu_);
  if (recording_ == nullptr || !recording_->Take()) return nullptr;
  return recording_;
}

}  // namespace penstock
