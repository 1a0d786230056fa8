// SPDX-License-Identifier: Apache-2.0
//
// StepRecorder: records the next steps of a master's sessions for an observer that is not their
// client, such as `penstock trace`. At the beginning of each step, its session calls Take, which
// costs one atomic load while there is no recording. At the end it hands over the step's trace.
//
//   auto recording = recorder.Begin({.steps = 20});
//   if (recording.ok()) { (*recording)->Wait(until_ns); steps = (*recording)->TakeSteps(); }
//
// There is at most one recording at a time. Steps are recorded in the order in which they end;
// partial runs are not. Steps that their client traces are recorded, too. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/runtime/step_stats.h"

namespace penstock {

struct RecordedStep {
  std::string session;                        // its handle
  std::vector<std::string> fetches, targets;  // the names that the step was run with
  int64_t start_ns = 0, end_ns = 0;           // the master's wall clock
  std::vector<DeviceStats> devices;           // the rows of each task are by the clock of that task
};

class StepRecorder {
 public:
  struct Limits {
    int64_t steps = 20;        // 1 to kStepsMax
    int64_t rows = 200'000;    // the number of executions of nodes in all recorded steps
    int64_t bytes = 64 << 20;  // approximate limit of the memory for recorded steps
  };
  static constexpr int64_t kStepsMax = 1'000;
  // At most this many steps are traced at a time, because some may never end.
  static constexpr int64_t kUnderWayMax = 32;

  class Recording {
   public:
    // Returns whether the caller must trace the step that begins now; then the caller must also
    // call Add or Drop.
    bool Take();
    // Keeps the step. If it exceeds a limit, drops it and ends the recording instead.
    void Add(RecordedStep step);
    // Tells the recording that a step has ended and is not to be kept.
    void Drop();

    // Waits until all steps are recorded, a limit is reached or Cancel is called, but at most
    // until `deadline_ns`. Returns whether the recording has ended.
    bool Wait(int64_t deadline_ns);
    void Cancel();

    // Returns the number of steps for which neither Add nor Drop was called yet.
    int64_t under_way() const;
    int64_t begun() const;  // number of steps chosen to be traced
    // Says why the recording ended before it had all its steps; "" if it has not ended,
    // or had them all.
    std::string cut() const;
    // Ends the recording and returns its steps.
    std::vector<RecordedStep> TakeSteps();

   private:
    friend class StepRecorder;
    Recording(const Limits& limits, Scheduler& threads)
        : limits_(limits), changed_(threads, "the steps of a trace") {}
    void End(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

    const Limits limits_;
    mutable Mutex mu_;
    Condition changed_;
    bool ended_ ABSL_GUARDED_BY(mu_) = false;
    std::string cut_ ABSL_GUARDED_BY(mu_);
    int64_t begun_ ABSL_GUARDED_BY(mu_) = 0;
    int64_t under_way_ ABSL_GUARDED_BY(mu_) = 0;
    int64_t rows_ ABSL_GUARDED_BY(mu_) = 0;
    int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
    std::vector<RecordedStep> steps_ ABSL_GUARDED_BY(mu_);
  };

  explicit StepRecorder(Scheduler& threads) : threads_(threads) {}

  // InvalidArgument if a limit is out of range; ResourceExhausted while another recording runs.
  StatusOr<std::shared_ptr<Recording>> Begin(const Limits& limits);
  // Ends `recording`, so that another one may begin. Does nothing if it is not the current one.
  void End(const std::shared_ptr<Recording>& recording);

  // Returns the recording that traces the step that begins now; null: none. Called by
  // sessions.
  std::shared_ptr<Recording> Take() {
    if (!records_.load(std::memory_order_relaxed)) [[likely]]
      return nullptr;
    return TakeSlow();
  }

 private:
  std::shared_ptr<Recording> TakeSlow();

  Scheduler& threads_;
  std::atomic<bool> records_{false};  // changed under mu_
  Mutex mu_;                          // locked before the mutex of a recording
  std::shared_ptr<Recording> recording_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
