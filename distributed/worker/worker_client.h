// SPDX-License-Identifier: Apache-2.0
//
// WorkerClient: how a master calls the worker of one task, in its own process or in another one.
//
// Calls never block: each ends by its continuation, exactly once, on any thread (possibly before
// the call returns), within its timeout. Arguments are borrowed until then if they are pointers,
// and copied otherwise. A call addresses one incarnation of a task (CallOptions::incarnation); any
// other answers Aborted. A task that cannot be reached is Unavailable. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/done.h"
#include "core/compiler/partition/partition.h"
#include "core/op/device_name.h"
#include "distributed/worker/worker.h"

namespace penstock {

struct CallOptions {
  uint64_t incarnation = 0;  // 0: whichever it is; GetStatus only
  int64_t timeout_ms = 0;    // > 0
};

struct TaskStatus {
  TaskId self;
  bool serving = false;
  std::string protocol;                       // of its transport
  std::vector<DeviceInfo> devices;            // if asked for
  std::vector<int64_t> running_steps;         // ids
  std::vector<std::string> unknown_sessions;  // of those named in the question
};

class WorkerClient {
 public:
  struct StatusQuestion {
    std::vector<std::string> sessions = {};  // leases to renew
    bool want_devices = false;
  };
  using StatusAnswer = absl::AnyInvocable<void(StatusOr<TaskStatus>) &&>;

  virtual ~WorkerClient() = default;
  virtual void GetStatus(const StatusQuestion& question, const CallOptions& options,
                         StatusAnswer answer) = 0;
  virtual void CreateSession(const WorkerSessionOptions& session, const CallOptions& options,
                             Done done) = 0;
  virtual void DeleteSession(const std::string& session, const CallOptions& options, Done done) = 0;
  virtual void RegisterGraph(const std::string& session, uint64_t graph,
                             std::vector<Partition> partitions, const CallOptions& options,
                             Done done) = 0;
  virtual void DeregisterGraph(const std::string& session, uint64_t graph,
                               const CallOptions& options, Done done) = 0;
  // Ends when the step's part has ended there. A worker in another process neither takes feeds nor
  // gives fetches back: they enter and leave by the master's own task.
  virtual void RunGraph(const RunGraphArgs& args, const CallOptions& options, Done done) = 0;
  // Has the step's part end with `why`; its RunGraph is answered when it has.
  virtual void AbortStep(int64_t step_id, const Status& why, const CallOptions& options,
                         Done done) = 0;
  // Stops waiting for the RunGraph of a step: it ends with Cancelled, wherever it stands. For tasks
  // that are lost; nothing happens if the worker is in this process.
  virtual void AbandonStep(int64_t step_id) = 0;
  virtual void Reset(const std::vector<std::string>& containers, const CallOptions& options,
                     Done done) = 0;
  // Asks the task to end its process in an orderly way.
  virtual void Shutdown(const std::string& reason, const CallOptions& options, Done done) = 0;

  // The worker itself, if it is in this process.
  virtual Worker* in_process() { return nullptr; }
};

// Calls `worker`, which is borrowed, on the caller's thread.
std::unique_ptr<WorkerClient> NewDirectWorkerClient(Worker& worker);

}  // namespace penstock
