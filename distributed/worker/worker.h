// SPDX-License-Identifier: Apache-2.0
//
// Worker: what a task does for masters: keeps the devices and their resources, the graphs that
// masters have registered, session by session, and runs them. One per task process; local sessions
// have one inside their own process.
//
// Masters choose handles and ids, so that a repeated call changes nothing. A call from another
// process names the incarnation of the task that it is meant for; WorkerService checks it. What a
// worker does not know it refuses with Aborted: it may have lost it in a restart, and the master
// has to begin again from a session. Thread-safe. Owns its devices. Destroy it when no step runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/done.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/compiler/partition/partition.h"
#include "core/op/task_name.h"
#include "core/runtime/device.h"
#include "core/runtime/kernel_cache.h"
#include "core/runtime/step_stats.h"
#include "distributed/worker/step_gate.h"
#include "distributed/worker/step_table.h"
#include "distributed/worker/worker_graph.h"

namespace penstock {

// A session, as a worker sees it.
struct WorkerSessionOptions {
  std::string handle;  // unique in the cluster
  bool isolate = false;
  std::vector<TaskId> tasks;  // all that the session uses, with their incarnations
  int64_t lease_ms = 0;       // without a sign of the master for so long it is deleted; 0: never
};

// One step's part for one task. Pointers are borrowed until `done`.
struct RunGraphArgs {
  std::string session;
  uint64_t graph = 0;
  int64_t step_id = 0;      // no other step of the cluster has it
  int64_t deadline_ns = 0;  // Env::NowNanos() scale; 0: none
  const Tensor* feeds = nullptr;
  int num_feeds = 0;
  Tensor* fetches = nullptr;
  int num_fetches = 0;
  StepStatsCollector* stats = nullptr;
  // RunGraph stores the task's Step here before any node of it runs, unless null.
  std::shared_ptr<Step>* step = nullptr;
  // The caller's thread may be used until the step has ended: nothing need leave it.
  bool on_this_thread = false;
  // A part of a few microseconds may run on the caller's thread, which is not held for longer.
  bool may_start_here = false;
};

class Worker {
 public:
  struct Options {
    TaskId self;  // its name is that of a task (core/op/task_name.h)
    std::vector<std::unique_ptr<Device>> devices;
    Scheduler* threads = nullptr;  // borrowed, as are the following
    Env* env = nullptr;
    DeadlineTimer* timer = nullptr;
    MemoryLimits memory = {};  // of each session and of each of its steps
  };
  explicit Worker(Options options);
  ~Worker();

  // How tensors of other tasks are asked for. Before any session with several tasks.
  void set_transport(Transport* transport);
  // Decides when the end of a step may be known outside; null: at once. Before any session.
  void set_step_gate(StepGate* gate) { gate_ = gate; }
  StepGate* step_gate() const { return gate_; }
  // Whether masters may use it: another process may be the task meanwhile (distributed/replica).
  bool serving() const { return serving_; }
  void set_serving(bool serving) { serving_ = serving; }
  // How it moves tensors to and from other tasks; "" without a transport.
  string_view protocol() const { return transport_ == nullptr ? "" : transport_->protocol(); }
  // The road by which tensors of the task `producer` come, "shm"; "" if none is known yet.
  std::string RoadFrom(const std::string& producer) const {
    return transport_ == nullptr ? "" : transport_->RoadFrom(producer);
  }
  // How a thread that waits for other tasks may take what they send; null if it cannot.
  Poller* poller() const { return transport_ == nullptr ? nullptr : transport_->poller(); }
  // This task's wall clock, in nanoseconds since 1970.
  int64_t WallNanos() const { return env_.WallMicros() * 1'000; }

  const TaskId& self() const { return self_; }
  std::vector<DeviceInfo> devices() const;
  StepTable& steps() { return steps_; }

  // Unavailable after RefuseSessions, and while it is not serving.
  Status CreateSession(const WorkerSessionOptions& options);
  // No new sessions from now on: the task is about to end.
  void RefuseSessions() { refusing_ = true; }
  // Aborts its steps. What they hold is freed when they have ended.
  void DeleteSession(const std::string& handle);
  // Renews the leases; returns those that it does not know.
  std::vector<std::string> TouchSessions(const std::vector<std::string>& handles);
  // Deletes the sessions whose masters have been silent for longer than their lease.
  void ReapSessions();
  // Whether sessions have been deleted since the last call.
  bool TakeDeleted() { return deleted_.exchange(false); }
  bool has_sessions() const;
  // Whether a step runs here, or a session that has graphs here may soon begin the next one: the
  // last step of any ended less than `quiet_ns` ago.
  bool in_use(int64_t quiet_ns) const;

  Status RegisterGraph(const std::string& session, uint64_t graph,
                       std::vector<Partition> partitions);
  void DeregisterGraph(const std::string& session, uint64_t graph);
  StatusOr<std::shared_ptr<WorkerGraph>> FindGraph(const std::string& session,
                                                   uint64_t graph) const;

  // All that are registered, with their sessions' handles; for inspection.
  struct RegisteredGraph {
    std::string session;
    std::shared_ptr<WorkerGraph> graph;
  };
  std::vector<RegisteredGraph> graphs() const;
  // The resources that devices and isolated sessions keep; for inspection.
  struct Store {
    std::string device;
    ResourceStore* resources;
    std::shared_ptr<ResourceStore> kept;  // `resources`, if it is a session's
  };
  std::vector<Store> stores() const;
  // The devices' allocators, and the accounts of sessions; for inspection.
  struct AllocatorUse {
    std::string device, name;
    AllocatorStats stats;
  };
  std::vector<AllocatorUse> allocators() const;
  struct SessionUse {
    std::string session;
    int64_t bytes = 0, peak_bytes = 0;
    int64_t limit = 0;  // 0: none
  };
  std::vector<SessionUse> session_memory() const;

  // `done` is called when nothing of the step runs here any more and all its tensors for other
  // tasks have left. An error is the first cause in this task.
  void RunGraph(const RunGraphArgs& args, Done done);
  // Ends a step that failed elsewhere; one that has not begun here will not.
  void AbortStep(int64_t step_id, const Status& why) { steps_.Abort(step_id, why); }

  // Drops what the containers hold on all devices; an empty list means the default container.
  // Isolated sessions' own are left alone, and everything while it is not serving.
  void Reset(const std::vector<std::string>& containers);

 private:
  struct Session {
    WorkerSessionOptions options;
    absl::flat_hash_map<TaskName, TaskId> tasks;
    std::map<std::string, std::shared_ptr<ResourceStore>> isolated;  // by device
    std::shared_ptr<const SessionMemory> memory;
    KernelCache kernels;
    absl::flat_hash_map<uint64_t, std::shared_ptr<WorkerGraph>> graphs;
    int64_t last_sign_ns = 0;
  };
  Device* FindDevice(string_view name) const;
  // Deletes the session, and ends its steps with `why`.
  void EndSession(const std::string& handle, const Status& why);
  StatusOr<std::shared_ptr<Session>> FindSession(const std::string& handle) const;
  StatusOr<std::vector<TaskId>> TasksOf(const std::string& session) const;
  StatusOr<std::shared_ptr<WorkerGraph>> MakeGraph(Session& session,
                                                   std::vector<Partition> partitions) const;
  StatusOr<std::vector<TaskId>> ProducersOf(const std::string& session,
                                            const WorkerGraph& graph) const;

  const TaskId self_;
  const TaskName name_;  // self_.name
  const std::vector<std::unique_ptr<Device>> devices_;
  Scheduler& threads_;
  Env& env_;
  DeadlineTimer& timer_;
  const std::unique_ptr<collective::Exchange> exchange_;
  StepTable steps_;
  Transport* transport_ = nullptr;
  StepGate* gate_ = nullptr;

  mutable Mutex mu_;
  // Sessions are changed under mu_ only (but for their kernels, which have a lock of their own);
  // their options and stores never change.
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> deleted_{false};
  std::atomic<bool> refusing_{false};
  std::atomic<bool> serving_{true};
  const MemoryLimits memory_;
};

}  // namespace penstock
