// SPDX-License-Identifier: Apache-2.0
//
// Task: one task of a cluster, with its worker, the transport that brings tensors from other tasks,
// and the master for the clients that connect to it. The constructor takes the components that
// differ between a gRPC server (distributed/rpc/server.h) and a simulation (distributed/sim), so
// that the same class runs in both.
//
//   Task task({.self = self, .env = &env, ...});
//   RETURN_IF_ERROR(task.Start(cluster));  // may be a master
//   task.Join();          // until RequestShutdown
//   task.Stop();
//
// Thread-safe, except Start. Destruction stops it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/runtime/deadline_timer.h"
#include "core/runtime/device.h"
#include "core/tensor/memory_account.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/master/in_process_master.h"
#include "distributed/master/master.h"
#include "distributed/transport/transport.h"
#include "distributed/worker/worker.h"

namespace penstock {

class Task {
 public:
  static constexpr int64_t kQuietNanos = 5'000'000'000;

  struct Parts {
    TaskId self;
    // Borrowed. All must use the same clock: the timer and the scheduler's deadlines use the Env's
    // clock.
    Env* env = nullptr;
    Scheduler* scheduler = nullptr;
    DeadlineTimer* timer = nullptr;
    const Registry* registry = nullptr;
    std::vector<std::unique_ptr<Device>> devices;
    // Moves tensors to and from other tasks. Borrowed until its owner has stopped it.
    Transport* transport = nullptr;
    // Makes the client of another task's worker.
    std::function<std::shared_ptr<WorkerClient>(const TaskId&)> connect;
    HealthOptions health = {};
    // How long a new session waits for the tasks it needs.
    int64_t create_timeout_ms = 60'000;
    // See Master::CloseIdleSessions. 0: never; else `connected_clients` is needed.
    int64_t idle_timeout_ms = 0;
    std::function<absl::flat_hash_set<std::string>()> connected_clients = nullptr;
    // Called every few seconds, to free memory that is not needed any more. Returns whether there
    // was any. May be null.
    std::function<bool()> drop_unused = nullptr;
    // Called after sessions have ended, or if drop_unused has returned true. `tensors`: no session
    // is left that would reuse memory which the allocator of tensors keeps. May be null.
    std::function<void(bool tensors)> return_memory = nullptr;
    MemoryLimits memory = {};  // Worker::Options::memory
    // The memory of the task's tensors. Borrowed. If it has no limit, the task sets one that suits
    // this machine.
    MemoryAccount* account = &MemoryAccount::Task();
  };
  explicit Task(Parts parts);
  ~Task();

  const TaskId& self() const { return worker_.self(); }
  Worker& worker() { return worker_; }
  Master& master() { return *master_; }  // REQUIRES: Start has succeeded
  // Returns the time since the construction.
  int64_t uptime_ns() const { return parts_.env->NowNanos() - made_ns_; }

  // Makes the master for the tasks of `cluster`, and makes the transport serve. Call this only
  // once. Errors are the transport's.
  Status Start(const ClusterSpec& cluster);
  // Makes sessions that this process creates for the task's address use its master directly.
  // REQUIRES: Start was called.
  void PublishSessions() { sessions_->Publish(); }
  // Makes a session with the task's master, in this process. REQUIRES: Start was called.
  std::unique_ptr<SessionInterface> NewSession(const SessionOptions& options) {
    return sessions_->NewSession(options);
  }

  // Blocks until RequestShutdown or Stop is called.
  void Join();
  void RequestShutdown(const std::string& reason);
  std::string shutdown_reason() const;
  // Returns whether sessions of other tasks or processes use this task: see Worker::in_use.
  bool in_use() const { return worker_.in_use(kQuietNanos); }
  // Refuses new sessions, and waits until the existing ones no longer use the task, but at most
  // `grace_ms`: their clients may have been told to end, too, and save their state. Does not wait
  // for sessions that have run nothing here for kQuietNanos.
  void Drain(int64_t grace_ms);

  // Ends the sessions, and aborts the running steps. Until the task is destroyed, other tasks
  // may still call it and begin steps here.
  void Stop();
  // Waits until running calls of sessions in this process have returned. REQUIRES: Stop was called.
  void WaitForSessions() { sessions_.reset(); }
  // Aborts the steps that have begun since Stop, and waits until no step runs any more, so that the
  // scheduler and the transport may be destroyed. REQUIRES: Stop was called, and other tasks can no
  // longer call. Has no deadline, because a kernel that is still running would use destroyed
  // objects. If kernels may never return, the process must limit the time itself
  // (client::ExitDeadline).
  void WaitForSteps();

 private:
  // Makes the transport serve. An error names the protocol and lists the other ones.
  Status ServeTransport();
  void RunHousekeeping();
  Status ShuttingDown() const;

  Parts parts_;
  const int64_t made_ns_;
  Worker worker_;
  std::optional<Master> master_;
  std::optional<InProcessMaster> sessions_;

  mutable Mutex mu_;
  Condition changed_;
  bool shutdown_requested_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::string shutdown_reason_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Thread> housekeeping_;
};

}  // namespace penstock
