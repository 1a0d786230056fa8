// SPDX-License-Identifier: Apache-2.0
//
// ClusterTrace: a recording of some steps of a running cluster, made by its tasks, and functions
// that bring the times of all tasks to one clock. Value types.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/runtime/step_stats.h"

namespace penstock {

struct ClusterTrace {
  // A task that was asked to record the steps of the sessions of which it is the master.
  struct Master {
    std::string task;
    Status status;            // the error if it recorded nothing, else OK
    int64_t sessions = 0;     // the number of sessions whose master it is
    int64_t steps_begun = 0;  // may exceed the recorded steps: some have not ended, or failed
    std::string
        cut;  // why the task did not wait for all requested steps; "" if it recorded them all
  };
  struct Step {
    std::string master;  // the name of a task
    std::string session;
    std::vector<std::string> fetches, targets;
    int64_t start_ns = 0, end_ns = 0;  // wall clock
    std::vector<DeviceStats> devices;
  };
  // The clock of `task` minus the clock of `reader`, within `error_ns` of the true
  // difference.
  struct ClockReading {
    std::string reader, task;
    int64_t offset_ns = 0, error_ns = 0;
  };

  std::string asked;  // the task that the tool asked, and that asked the other tasks
  std::vector<Master> masters;
  std::vector<Step> steps;
  std::vector<ClockReading> readings;
  std::map<std::pair<std::string, std::string>, std::string> protocols;  // from, to: "shm"
};

// A task's clock minus the clock of ClusterTrace::asked. `error_ns`: how far `offset_ns` may be
// wrong; < 0 if no readings connect the two tasks.
struct TaskClock {
  int64_t offset_ns = 0;
  int64_t error_ns = -1;
};

// Returns the clock of each task that occurs in `trace`, relative to the clock of `trace.asked`.
// Reaches each task from `trace.asked` over the readings whose errors have the smallest sum, and
// adds up their offsets.
std::map<std::string, TaskClock> CompareClocks(const ClusterTrace& trace);

// Moves all times to the clock of `trace->asked`. Times of tasks that no readings connect with it
// stay as they are.
void AlignTimes(const std::map<std::string, TaskClock>& clocks, ClusterTrace* trace);

}  // namespace penstock
