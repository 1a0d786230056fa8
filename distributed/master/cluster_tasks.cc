// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/cluster_tasks.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool IsSelected(const std::vector<DeviceName>& filters, const DeviceName& name) {
  if (filters.empty()) return true;
  return std::any_of(filters.begin(), filters.end(), [&](const DeviceName& filter) {
    const bool is_task = !name.type.has_value();
    return (is_task ? filter.Task() : filter).Matches(name);
  });
}

ClusterTasks::ClusterTasks(const ClusterSpec& cluster, std::string self, Connect connect)
    : cluster_(cluster), self_(std::move(self)), connect_(std::move(connect)) {}

std::vector<TaskWait::Task> ClusterTasks::Selected(const std::vector<DeviceName>& filters) {
  std::vector<TaskWait::Task> selected;
  for (const auto& [job, tasks] : cluster_.jobs()) {
    for (const auto& [index, address] : tasks) {
      const DeviceName name{.job = job, .replica = 0, .task = index};
      const std::string text = name.ToString();
      if (text == self_ || !IsSelected(filters, name)) continue;
      selected.push_back(
          WithClients({.name = text, .address = address}, cluster_.ReplicaAddress(job, index)));
    }
  }
  return selected;
}

TaskWait::Task ClusterTasks::WithClients(const TaskId& task, const std::string& replica_address) {
  TaskWait::Task made{.id = task,
                      .client = ClientOf(task),
                      .other = {.name = task.name, .address = replica_address}};
  if (!replica_address.empty()) made.other_client = ClientOf(made.other);
  return made;
}

std::shared_ptr<WorkerClient> ClusterTasks::ClientOf(const TaskId& task) {
  MutexLock lock(mu_);
  std::shared_ptr<WorkerClient>& client = clients_[task.address];
  if (client == nullptr) client = connect_(task);
  return client;
}

}  // namespace penstock
