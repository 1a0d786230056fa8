// SPDX-License-Identifier: Apache-2.0
//
// StepTrace: records when the nodes of some training steps ran, on all tasks of the steps. Writes a
// timeline file that https://ui.perfetto.dev and chrome://tracing show, and describes in one line
// how busy the devices were.
//
//   StepTrace trace({.first_step = 100, .steps = 20});
//   ... TrainingOptions{.trace = &trace} ...
//   trace.WriteJson(env, "steps.json");
//
// Times come from each task's own clock, so the times of two machines are shifted by the difference
// of their clocks. Tracing a step costs some microseconds per node. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/runtime/step_stats.h"

namespace penstock::client {

struct TracedStep {
  int64_t step = 0;                  // the global step when the step began
  int64_t start_ns = 0, end_ns = 0;  // wall clock
  std::vector<DeviceStats> devices;
};

class StepTrace {
 public:
  struct Options {
    int64_t first_step = 0;
    int64_t steps = 20;  // how many steps to trace, from first_step on
  };
  // How busy the devices were from the start of the first step to the end of the last one.
  struct Use {
    int64_t steps = 0;
    double seconds = 0;
    double steps_under_way = 0;  // mean number of concurrent steps
    // The share of the time in which at least one op ran on the device. Ops that wait for other
    // ops, such as receives and queue ops, do not count.
    std::map<std::string, double> busy;
  };

  explicit StepTrace(Options options) : options_(options) {}

  // Returns whether to trace a step that begins now, and counts it if so.
  bool Take(int64_t step);
  void Add(TracedStep step);

  Use use() const;
  // Returns a line such as "20 steps in 0.16 s, 1.9 at a time; busy: /job:ps/task:0/device:CPU:0 35
  // %, ..."
  std::string Describe() const;
  // Sets the transport of each transfer, for the file. `roads`: the transport by the names of the
  // sending and the receiving task, as AskRoads (distributed/rpc/ask_cluster.h) returns them; a
  // TrainingLoop calls AskRoads after the first traced step.
  using Roads = std::map<std::pair<std::string, std::string>, std::string>;
  void SetRoads(Roads roads);
  bool has_roads() const;
  // Writes Chrome's Trace Event Format, complete events ("ph": "X"), with a process per device and
  // a lane per thread. An asynchronous op, whose thread does other work meanwhile, has a lane of
  // its own. A transfer has its bytes and its transport: "shm", "grpc", "verbs" or, within a task,
  // "local". The transport is left out if it is not known.
  Status WriteJson(Env& env, const std::string& path) const;

 private:
  const Options options_;
  mutable Mutex mu_;
  int64_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<TracedStep> steps_ ABSL_GUARDED_BY(mu_);
  std::optional<Roads> roads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::client
