// SPDX-License-Identifier: Apache-2.0
//
// ExamineCluster: finds mistakes in a cluster's specification, and in the answers that a probe of
// its tasks' addresses has got. It calls no task itself, so that tests can produce every finding.
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
  bool second_replica = false;  // the process at --ps_replica_hosts
  TaskProbe probe;
};

// Returns the tasks of the cluster, in order, each followed by its second replica if it has one.
// They are not probed yet.
std::vector<ProbedTask> TasksOf(const ClusterSpec& cluster);

// Returns the findings about a cluster. `config` is the configuration of this process. A task that
// is not running is an error if any task other than this process's own is running. If none is, the
// cluster has not been started, and the finding is only a warning. If `config.job` is empty, this
// process is no task of the cluster; otherwise its own task may be stopped, which gives the level
// kOk.
Findings ExamineCluster(const TaskConfig& config, const std::vector<ProbedTask>& tasks);

// Does the same as ExamineCluster for a task that has just been started, when other tasks may not
// have started or answered yet. Returns only warnings and errors.
Findings ExamineClusterAtStart(const TaskConfig& config, std::vector<ProbedTask> tasks);

}  // namespace penstock
