// SPDX-License-Identifier: Apache-2.0
//
// Worker: serves masters in one task: keeps the devices and their resources, and the graphs that
// masters have registered for each session, and runs these graphs. There is one per task; local
// sessions of a process share one.
//
// Masters choose handles and ids, so that a repeated call changes nothing. A call from another
// process names the incarnation of the task; WorkerService checks it. A call that names an unknown
// session or graph returns Aborted: a restart may have lost it, and the master has to make a new
// session. Thread-safe. Owns its devices. Must not be destroyed while a step runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/done.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/compiler/partition/partition.h"
#include "core/op/task_name.h"
#include "core/runtime/device.h"
#include "core/runtime/step_stats.h"
#include "distributed/worker/session_table.h"
#include "distributed/worker/step_gate.h"
#include "distributed/worker/step_table.h"
#include "distributed/worker/training_program.h"
#include "distributed/worker/update_rules.h"
#include "distributed/worker/worker_graph.h"

namespace penstock {

// The part of a step that one task runs. Pointers are borrowed until `done`.
struct RunGraphArgs {
  std::string session;
  uint64_t graph = 0;
  int64_t step_id = 0;      // unique in the cluster
  int64_t deadline_ns = 0;  // Env::NowNanos() scale; 0: none
  const Tensor* feeds = nullptr;
  int num_feeds = 0;
  Tensor* fetches = nullptr;
  int num_fetches = 0;
  StepStatsCollector* stats = nullptr;
  // If not null, RunGraph stores the task's Step here before any node of it runs.
  std::shared_ptr<Step>* step = nullptr;
  // If true, the caller's thread may run all nodes of the part, until the step has ended.
  bool on_this_thread = false;
  // If true, the caller's thread may run the part if that takes only a few microseconds.
  bool may_start_here = false;
};

class Worker {
 public:
  struct Options {
    TaskId self;  // with a valid name (core/op/task_name.h)
    std::vector<std::unique_ptr<Device>> devices;
    Scheduler* threads = nullptr;  // this member and the following ones are borrowed
    Env* env = nullptr;
    DeadlineTimer* timer = nullptr;
    MemoryLimits memory = {};  // limits for each session and each of its steps
    // The account of all sessions together; borrowed.
    MemoryAccount* account = &MemoryAccount::Task();
  };
  explicit Worker(Options options);
  ~Worker();

  // Sets the transport for tensors of other tasks. Call this before a session with several tasks is
  // created.
  void set_transport(Transport* transport);
  // Sets the gate that decides when the end of a step may be reported; null: at once. Call this
  // before any session is created.
  void set_step_gate(StepGate* gate) { gate_ = gate; }
  StepGate* step_gate() const { return gate_; }
  // Returns whether masters may use this worker. It is false while the other replica serves
  // (distributed/replica).
  bool serving() const { return serving_; }
  void set_serving(bool serving) { serving_ = serving; }
  // Returns the name of the transport; "" if there is none.
  string_view protocol() const { return transport_ == nullptr ? "" : transport_->protocol(); }
  // Returns the name of the transport by which tensors of the task `producer` come, "shm"; "" if it
  // is not known yet.
  std::string ProtocolFrom(const std::string& producer) const {
    return transport_ == nullptr ? "" : transport_->ProtocolFrom(producer);
  }
  // Returns the Poller with which a thread that waits for other tasks may receive their tensors
  // itself; null if there is none.
  Poller* poller() const { return transport_ == nullptr ? nullptr : transport_->poller(); }
  // Returns the time of this task's wall clock, in nanoseconds since 1970.
  int64_t WallNanos() const { return env_.WallMicros() * 1'000; }

  const TaskId& self() const { return self_; }
  std::vector<DeviceInfo> devices() const;
  StepTable& steps() { return steps_; }

  // Creates a session; a repeated call changes nothing. If the master has restarted, shortens the
  // leases of the sessions of its earlier incarnations to a fifth. Unavailable after
  // RefuseSessions, or if this worker is not serving.
  Status CreateSession(const WorkerSessionOptions& options);
  // Refuses new sessions from now on, because the task is about to end.
  void RefuseSessions() { refusing_ = true; }
  // Deletes a session and aborts its steps. Their tensors are freed when they have ended.
  void DeleteSession(const std::string& handle);
  // Ends the steps of the sessions of `master`, which this task's own heartbeats have found lost,
  // without waiting for the leases. Skips sessions whose lease the master has just renewed, unless
  // `why` is Aborted: then the master has restarted, and all its sessions end with their steps.
  void MasterLost(const TaskId& master, const Status& why);
  // Renews the leases of these sessions; returns the handles that it does not know.
  std::vector<std::string> RenewLeases(const std::vector<std::string>& handles) {
    return sessions_.RenewLeases(handles);
  }
  // Deletes the sessions whose masters have been silent for longer than their lease.
  void DeleteExpiredSessions();
  // Returns whether sessions have been deleted since the last call.
  bool DeletedSinceLastCall() { return deleted_.exchange(false); }
  bool has_sessions() const { return !sessions_.empty(); }
  // Returns true if a step runs here, or if one is likely to begin soon: a session has graphs here,
  // and the last step ended less than `quiet_ns` ago.
  bool in_use(int64_t quiet_ns) const;

  // Makes the graph ready to run; a repeated call changes nothing. InvalidArgument if there are no
  // partitions, or one is for a device that this task does not have. `program`: the summary of the
  // step's updates of variables, to be compared with those of other sessions.
  Status RegisterGraph(const std::string& session, uint64_t graph,
                       std::vector<Partition> partitions, const TrainingProgram& program = {});
  // Forgets the graph; its running steps keep it until they have ended.
  void DeregisterGraph(const std::string& session, uint64_t graph);
  StatusOr<std::shared_ptr<WorkerGraph>> FindGraph(const std::string& session,
                                                   uint64_t graph) const {
    return sessions_.FindGraph(session, graph);
  }

  // The following are for status reports.
  using RegisteredGraph = SessionTable::RegisteredGraph;
  std::vector<RegisteredGraph> graphs() const { return sessions_.graphs(); }
  // Returns a message for each session that updates a variable of this task in another way than
  // other sessions do (update_rules.h); for status reports.
  std::vector<std::string> program_differences() const { return update_rules_.Differences(); }
  // The resources of a device or of an isolated session; for status reports.
  struct Store {
    std::string device;
    ResourceStore* resources;
    std::shared_ptr<ResourceStore> kept;  // owns `resources`, if they belong to a session
  };
  std::vector<Store> stores() const;
  // The memory use of a device's allocator; for status reports.
  struct AllocatorUse {
    std::string device, name;
    AllocatorStats stats;
  };
  std::vector<AllocatorUse> allocators() const;
  // The memory use of a session; for status reports.
  struct SessionUse {
    std::string session;
    int64_t bytes = 0, peak_bytes = 0;
    int64_t limit = 0;  // 0: none
  };
  std::vector<SessionUse> session_memory() const;

  // Runs a part of a step. `done` is called when no node of it runs here any more and all its
  // tensors for other tasks have been sent. An error is the cause in this task.
  void RunGraph(const RunGraphArgs& args, Done done);
  // Ends a step that has failed in another task. If it has not begun here, it cannot begin any
  // more.
  void AbortStep(int64_t step_id, const Status& why) { steps_.Abort(step_id, why); }

  // Deletes the resources in the containers on all devices. An empty list means the default
  // container. Does not touch the resources of isolated sessions. Does nothing while not serving.
  void Reset(const std::vector<std::string>& containers);

 private:
  Device* FindDevice(string_view name) const;
  // Notes how a new graph of the session updates variables, and logs differences.
  void NoteUpdateRules(const WorkerSessionOptions& session,
                       const std::vector<Partition>& partitions, const TrainingProgram& program);
  // Deletes the session, and ends its steps with `why`.
  void EndSession(const std::string& handle, const Status& why);
  StatusOr<std::vector<TaskId>> TasksOf(const std::string& session) const;
  StatusOr<std::shared_ptr<WorkerGraph>> MakeGraph(WorkerSession& session,
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
  UpdateRules update_rules_;
  SessionTable sessions_;
  std::atomic<bool> deleted_{false};
  std::atomic<bool> refusing_{false};
  std::atomic<bool> serving_{true};
  const MemoryLimits memory_;
  MemoryAccount& account_;
};

}  // namespace penstock
