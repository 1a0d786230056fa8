// SPDX-License-Identifier: Apache-2.0
//
// MeasuredCluster: one ps and some workers, each a process of this same program, which measure
// steps between them when asked. Single-threaded; a Round borrows the cluster, and making the next
// one may end the tasks of the one before.
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

  // Microseconds of a step in which each of `workers` ("1" to "99") reads a number from the ps, all
  // at once.
  StatusOr<Round> PrepareNullStep(const std::string& workers);
  // GB/s of one tensor of `size` ("4KB") from the ps to a worker.
  StatusOr<Round> PrepareTransfer(const std::string& size);
  // Microseconds of the sum of one tensor of `size` of each of `workers`, at all of them: "4KB/2".
  StatusOr<Round> PrepareAllReduce(const std::string& size_and_workers);
  // what "rss_mb": resident memory of a server that has nothing to do; "start_ms": from the start
  // of its process until it serves.
  StatusOr<Round> PrepareIdleServer(const std::string& what);

 private:
  class Task;
  Status Start(int workers);
  StatusOr<double> Seconds(const std::string& step);

  std::vector<std::unique_ptr<Task>> tasks_;  // the ps, then the workers
};

// Runs a task's process until its standard input ends: binds a port of its own, learns the cluster,
// serves, and measures the steps that it is told, a line each.
int RunMeasuredTask(const std::string& job, const std::string& index);

}  // namespace penstock::benchmark
