// SPDX-License-Identifier: Apache-2.0
//
// ExamineCluster: what is wrong with a cluster, judged by its specification and by what the
// addresses of its tasks have answered. No calls are made here, so that every judgement can be
// tested.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "distributed/cluster/cluster_spec.h"
#include "distributed/doctor/finding.h"
#include "distributed/rpc/task_probe.h"

namespace penstock {

struct ProbedTask {
  std::string job;
  int index = 0;
  std::string address;
  TaskProbe probe;
};

// The tasks of the cluster, in order, not probed yet.
std::vector<ProbedTask> TasksOf(const ClusterSpec& cluster);

// `config`: what this process was told. A task that is not running is an error if another one is,
// and a warning if none is: then the cluster has not been started. `config.job` may be empty: no
// task is this process's own; else its own need not run.
Findings ExamineCluster(const TaskConfig& config, const std::vector<ProbedTask>& tasks);

}  // namespace penstock
