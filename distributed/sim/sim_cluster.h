// SPDX-License-Identifier: Apache-2.0
//
// SimCluster: the tasks of a cluster on a simulated network, in one thread.
//
//   scheduler.Run([&] {
//     SimCluster cluster(scheduler, env, {{"ps", 2}, {"worker", 2}});
//     auto session = cluster.NewSession("client", "worker", 0);
//     ...
//   });
//
// A SimCluster is made and destroyed in SimScheduler::Run, and runs only there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "distributed/sim/sim_memory.h"
#include "distributed/sim/sim_network.h"

namespace penstock {

class SimCluster {
 public:
  // `jobs`: the number of tasks of each job. `task_bytes`: the bytes of tensors that each may hold.
  SimCluster(SimScheduler& scheduler, Env& env, const std::map<std::string, int>& jobs,
             const SimNetwork::Options& options = {}, int64_t task_bytes = kSimTaskBytes);
  ~SimCluster();

  SimNetwork& network() { return network_; }
  Task& task(const std::string& job, int index) { return *tasks_.at({job, index}); }
  // Makes a session of the client `client` with the master of task `index` of `job`.
  std::unique_ptr<SessionInterface> NewSession(const std::string& client, const std::string& job,
                                               int index, const SessionOptions& options = {}) {
    return network_.NewSession({client}, task(job, index).self(), options);
  }

 private:
  void AddTask(const std::string& job, int index);

  SimScheduler& scheduler_;
  Env& env_;
  ClusterSpec spec_;
  const std::unique_ptr<DeadlineTimer> timer_;
  SimNetwork network_;
  using TaskKey = std::pair<std::string, int>;
  const int64_t task_bytes_;
  std::map<TaskKey, MemoryAccountPtr> accounts_;
  std::map<TaskKey, std::unique_ptr<Transport>> transports_;
  std::map<TaskKey, std::unique_ptr<Task>> tasks_;
};

}  // namespace penstock
