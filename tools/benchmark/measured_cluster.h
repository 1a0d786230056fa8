// SPDX-License-Identifier: Apache-2.0
//
// MeasuredCluster: one ps and some workers, each a process of this program. On request, the workers
// measure steps that use the ps or the other workers. Each Prepare function starts the tasks and
// returns the Round that measures. Single-threaded. A Round borrows the cluster; preparing the next
// Round may end the tasks of the previous one.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/benchmark/rounds.h"

namespace penstock::benchmark {

class MeasuredCluster {
 public:
  MeasuredCluster();
  ~MeasuredCluster();

  // Measures microseconds of a step that reads a number from the ps; `workers` ("1" to "99")
  // workers run the step concurrently. In this function and the following ones, all tasks use
  // `protocol`: "grpc" or "shm".
  StatusOr<Round> PrepareNullStep(const std::string& protocol, const std::string& workers);
  // Measures GB/s of sending one tensor of `size` ("4KB") from the ps to a worker.
  StatusOr<Round> PrepareTransfer(const std::string& protocol, const std::string& size);
  // Measures microseconds of an all-reduce of one tensor of `size` per worker.
  StatusOr<Round> PrepareAllReduce(const std::string& protocol, const std::string& size,
                                   const std::string& workers);
  // Measures an idle server. "rss_mb": its resident memory; "start_ms": the time from the start of
  // its process until it serves.
  StatusOr<Round> PrepareIdleServer(const std::string& what);

 private:
  class Task;
  Status Start(const std::string& protocol, int workers);
  StatusOr<double> Seconds(const std::string& step);

  std::vector<std::unique_ptr<Task>> tasks_;  // the ps, then the workers
};

// Runs a task's process until its standard input ends: binds a free port, reads the cluster,
// serves, and then reads lines that each name a step to measure. Returns the exit code.
int RunMeasuredTask(const std::string& job, const std::string& index, const std::string& protocol);

}  // namespace penstock::benchmark
