// SPDX-License-Identifier: Apache-2.0
//
// ClusterTasks: the tasks of a cluster except the master's own, with the clients of their workers.
//
// Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/device_name.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/master/task_wait.h"

namespace penstock {

// Returns whether the filters select the device or task `name`. A filter without a device type and
// index selects all devices of its task; no filters select everything.
bool IsSelected(const std::vector<DeviceName>& filters, const DeviceName& name);

class ClusterTasks {
 public:
  // Makes the client of another task's worker.
  using Connect = std::function<std::shared_ptr<WorkerClient>(const TaskId&)>;
  // `self`: the name of the master's own task.
  ClusterTasks(const ClusterSpec& cluster, std::string self, Connect connect);

  // Returns the tasks that the filters select, with their clients and other replicas.
  std::vector<TaskWait::Task> Selected(const std::vector<DeviceName>& filters)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  TaskWait::Task WithClients(const TaskId& task, const std::string& replica_address);
  std::shared_ptr<WorkerClient> ClientOf(const TaskId& task) ABSL_LOCKS_EXCLUDED(mu_);

  const ClusterSpec& cluster_;
  const std::string self_;
  const Connect connect_;
  Mutex mu_;
  std::map<std::string, std::shared_ptr<WorkerClient>> clients_ ABSL_GUARDED_BY(mu_);  // by address
};

}  // namespace penstock
