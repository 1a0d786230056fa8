// SPDX-License-Identifier: Apache-2.0
//
// MeasuredCluster: one ps and some workers, each a process of this same program, which measure steps
// between them when asked. Single-threaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock::benchmark {

class MeasuredCluster {
 public:
  MeasuredCluster();
  ~MeasuredCluster();

  // kind "null_step": microseconds of a step in which each of `what` workers reads one number from the
  // ps, all at once. kind "transfer": GB/s of one tensor of size `what` from the ps to a worker.
  StatusOr<double> Measure(const std::string& kind, const std::string& what);
  // "rss_mb": resident memory of a server that has nothing to do; "start_ms": from its start until
  // it serves.
  StatusOr<double> MeasureIdleServer(const std::string& what);

 private:
  class Task;
  Status Start(int workers);
  std::vector<std::unique_ptr<Task>> tasks_;
};

// What a task's process does: `json` is [ps_hosts, worker_hosts, job, index].
int RunMeasuredTask(const std::string& json);

}  // namespace penstock::benchmark
