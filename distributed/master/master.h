// SPDX-License-Identifier: Apache-2.0
//
// Master: keeps the sessions that clients have with one task, and the clients of the tasks that
// these sessions use.
//
// Any task can be a master; a cluster has as many masters as there are tasks with clients.
// Functions block until they are done, at most until their deadlines, except AwaitTasks. Sessions
// run the steps. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/master/cluster_tasks.h"
#include "distributed/master/health.h"
#include "distributed/master/master_session.h"
#include "distributed/master/step_rate.h"
#include "distributed/master/task_wait.h"

namespace penstock {

class Master {
 public:
  struct Options {
    ClusterSpec cluster;
    Worker* worker = nullptr;  // the worker of the master's own task; borrowed
    // Makes the client of another task's worker.
    std::function<std::shared_ptr<WorkerClient>(const TaskId&)> connect;
    MasterStep::Services services;
    const Registry* registry = nullptr;
    HealthOptions health;
    // How long a new session waits for the tasks it needs.
    int64_t create_timeout_ms = 60'000;
    // A session whose client has been gone for this long is closed, and a partial run that was not
    // used for this long is ended: see CloseIdleSessions. 0: never.
    int64_t idle_timeout_ms = 0;
  };
  using AddNodes = absl::FunctionRef<Status(Graph*)>;
  using TasksFound = absl::AnyInvocable<void(StatusOr<std::vector<SessionTask>>) &&>;

  explicit Master(Options options);
  ~Master();

  const ClusterSpec& cluster() const { return options_.cluster; }
  // Returns the master's own task.
  const TaskId& self() const { return options_.worker->self(); }

  // Creating a session takes two calls, AwaitTasks and CreateSession. AwaitTasks waits, without a
  // thread, for the tasks that a session with these options uses, and calls `found` on any thread;
  // DeadlineExceeded names the tasks that did not answer. The caller may cancel the returned wait
  // (null: `found` has been called with an error).
  std::shared_ptr<TaskWait> AwaitTasks(const SessionOptions& options, TasksFound found);
  // Creates a session after AwaitTasks. `client`: the client's address, as in ConnectedClients; ""
  // for a client in this process.
  StatusOr<std::shared_ptr<MasterSession>> CreateSession(const SessionOptions& options, Graph graph,
                                                         std::vector<SessionTask> tasks,
                                                         const std::string& client);
  // Waits for the tasks and creates the session, for clients in this process.
  StatusOr<std::shared_ptr<MasterSession>> CreateSession(const SessionOptions& options,
                                                         AddNodes add);
  Graph NewGraph() const { return Graph(*options_.registry); }
  // Returns the session. Aborted "Session H is not found." if it was closed or the master has been
  // restarted.
  StatusOr<std::shared_ptr<MasterSession>> FindSession(const std::string& handle) const;
  // Closes a session. `reason` is for the log. Aborted if there is no such session.
  Status CloseSession(const std::string& handle,
                      const std::string& reason = "its client has closed it");
  // Closes all sessions, and drops the resources in `containers` on this task and on all others
  // that match the filters. Unavailable if this task, or a task with two replicas, does not serve.
  Status Reset(const std::vector<std::string>& containers,
               const std::vector<std::string>& device_filters);

  bool closes_idle_sessions() const { return options_.idle_timeout_ms > 0; }
  // Closes each session that has been unused for idle_timeout_ms: it ran no step, and no call of
  // this function found a connection of its client. `connected`: the addresses of clients that
  // have a connection. Also ends the partial runs of other processes' clients that have been
  // unused for as long, even if the client is connected: it may never have read the handle.
  void CloseIdleSessions(const absl::flat_hash_set<std::string>& connected);
  // Returns whether sessions have been closed since the last call.
  bool ClosedSinceLastCall() { return closed_.exchange(false); }

  // The following are for status reports and tests.
  std::vector<std::shared_ptr<MasterSession>> sessions() const;
  std::vector<std::shared_ptr<const TaskWait>> waits() const;
  std::vector<HealthMonitor::Peer> peers() const { return health_.peers(); }
  const StepCounters& counters() const { return *counters_; }
  // Returns the recorder of all sessions' steps.
  StepRecorder& recorder() { return *recorder_; }
  // Reads the clocks of all peers again, which makes the offsets in peers() more accurate.
  void ReadClocks() { health_.ReadClocks(); }
  // Returns the number of steps begun in all sessions, closed ones included.
  uint64_t steps_begun() const;
  // Samples the number of steps (see StepRate). The caller calls this every few seconds.
  void SampleSteps();
  double steps_per_second() const;

  // Ends all sessions, and refuses new ones.
  void Stop();

 private:
  StatusOr<std::vector<SessionTask>> SessionTasksOf(const std::vector<TaskWait::Task>& tasks,
                                                    const std::vector<DeviceName>& filters,
                                                    std::vector<TaskStatus> answers) const;
  Status AddWait(uint64_t id, const std::shared_ptr<TaskWait>& wait);
  void RemoveWait(uint64_t id);
  std::vector<std::shared_ptr<MasterSession>> TakeSessions();
  void LogNewSession(const MasterSession& session, const std::string& client);
  void LogClosedSession(const MasterSession& session, const std::string& reason) const;
  bool stopped() const;
  Status ShuttingDown() const;

  const Options options_;
  const std::shared_ptr<WorkerClient> own_;
  ClusterTasks tasks_;
  const std::shared_ptr<StepCounters> counters_ = std::make_shared<StepCounters>();
  const std::shared_ptr<StepRecorder> recorder_;
  HealthMonitor health_;
  StepRate rate_;

  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<MasterSession>> sessions_ ABSL_GUARDED_BY(mu_);
  // Ordered by number, so that Stop() cancels the waits in the order of arrival, and simulated runs
  // are repeatable.
  std::map<uint64_t, std::shared_ptr<TaskWait>> waits_ ABSL_GUARDED_BY(mu_);
  uint64_t last_wait_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // The incarnation of each task in the last session that used the task.
  std::map<std::string, uint64_t> incarnations_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> closed_{false};
};

}  // namespace penstock
