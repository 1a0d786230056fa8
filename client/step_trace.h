// SPDX-License-Identifier: Apache-2.0
//
// StepTrace: what some steps of a training did, on all their tasks, on one time line: a file that
// https://ui.perfetto.dev and chrome://tracing show, and in short how busy the devices were.
//
//   StepTrace trace({.first_step = 100, .steps = 20});
//   ... TrainingOptions{.trace = &trace} ...
//   trace.WriteJson(env, "steps.json");
//
// Times are each task's own clock: those of two machines are as far apart as their clocks are.
// Tracing a step costs some microseconds per node. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/runtime/step_stats.h"

namespace penstock::client {

struct TracedStep {
  int64_t step = 0;                  // the global step that it began with
  int64_t start_ns = 0, end_ns = 0;  // wall clock
  std::vector<DeviceStats> devices;
};

class StepTrace {
 public:
  struct Options {
    int64_t first_step = 0;
    int64_t steps = 20;  // so many, from first_step on
  };
  // How much went on between the first step's start and the last one's end.
  struct Use {
    int64_t steps = 0;
    double seconds = 0;
    double steps_under_way = 0;  // on average
    // The share of the time in which at least one op ran on the device that does not wait for
    // others, as the receiving of tensors and the ops of queues do.
    std::map<std::string, double> busy;
  };

  explicit StepTrace(Options options) : options_(options) {}

  // Whether a step that begins now is to be traced. Counts those that are.
  bool Take(int64_t step);
  void Add(TracedStep step);

  Use use() const;
  // "20 steps in 0.16 s, 1.9 at a time; busy: /job:ps/task:0/device:CPU:0 35 %, ..."
  std::string Describe() const;
  // The format: Chrome's Trace Event Format, complete events ("ph": "X"). A process per device, a
  // lane per thread; what waits while its thread does other things has a lane of its own.
  Status WriteJson(Env& env, const std::string& path) const;

 private:
  const Options options_;
  mutable Mutex mu_;
  int64_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<TracedStep> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::client
