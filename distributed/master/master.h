// SPDX-License-Identifier: Apache-2.0
//
// Master: the sessions that clients have with one task, and the tasks of the cluster that they use.
//
// Any task can be a master; a cluster has as many as clients address. Functions block until they
// are done, within their deadlines; running steps is the sessions' business. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/master/health.h"
#include "distributed/master/master_session.h"

namespace penstock {

class Master {
 public:
  struct Options {
    ClusterSpec cluster;
    Worker* worker = nullptr;  // of the master's own task; borrowed
    // Makes the client of another task's worker.
    std::function<std::shared_ptr<WorkerClient>(const TaskId&)> connect;
    MasterStep::Services services;
    const Registry* registry = nullptr;
    HealthOptions health;
    // How long a new session waits for the tasks it needs.
    int64_t create_timeout_ms = 60'000;
    // A session that nobody has used for so long is closed. 0: never.
    int64_t idle_timeout_ms = 0;
  };
  using AddNodes = absl::FunctionRef<Status(Graph*)>;

  explicit Master(Options options);
  ~Master();

  const ClusterSpec& cluster() const { return options_.cluster; }

  // DeadlineExceeded names the tasks that did not answer.
  StatusOr<std::shared_ptr<MasterSession>> CreateSession(const SessionOptions& options,
                                                         AddNodes add);
  // Aborted "Session H is not found.": it was closed, or the master has been restarted.
  StatusOr<std::shared_ptr<MasterSession>> FindSession(const std::string& handle) const;
  Status CloseSession(const std::string& handle);
  // Closes all sessions and drops what the containers hold on all tasks that match the filters.
  Status Reset(const std::vector<std::string>& containers,
               const std::vector<std::string>& device_filters);

  void CloseIdleSessions();
  // Ends all sessions; no new ones.
  void Stop();

 private:
  struct Contact;
  StatusOr<std::vector<SessionTask>> ContactTasks(const std::vector<DeviceName>& filters,
                                                  int64_t timeout_ms);
  std::vector<TaskId> MatchingTasks(const std::vector<DeviceName>& filters) const;
  std::shared_ptr<WorkerClient> ClientOf(const TaskId& task);
  std::vector<std::shared_ptr<MasterSession>> TakeSessions();
  bool stopped() const;

  const Options options_;
  const std::shared_ptr<WorkerClient> own_;
  HealthMonitor health_;

  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<WorkerClient>> clients_
      ABSL_GUARDED_BY(mu_);  // by task name
  std::map<std::string, std::shared_ptr<MasterSession>> sessions_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock
