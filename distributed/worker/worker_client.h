// SPDX-License-Identifier: Apache-2.0
//
// WorkerClient: the interface by which a master calls the worker of one task, in its own process
// or in another one.
//
// Calls never block: each ends by calling its continuation, exactly once, on any thread (possibly
// before the call returns), within its timeout. Arguments are borrowed until then if they are
// pointers, and copied otherwise. A call addresses one incarnation of a task
// (CallOptions::incarnation); any other incarnation answers Aborted. Unavailable if the task cannot
// be reached. Thread-safe.
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
  uint64_t incarnation = 0;  // 0: any incarnation; GetStatus and Shutdown only
  int64_t timeout_ms = 0;    // > 0
};

struct TaskStatus {
  TaskId self;
  bool serving = false;                // Worker::serving
  std::string protocol;                // the name of its transport
  std::vector<DeviceInfo> devices;     // filled only if the caller asks for the devices
  std::vector<int64_t> running_steps;  // ids
  // The sessions named in the question that the task does not know.
  std::vector<std::string> unknown_sessions;
  int64_t wall_ns = 0;  // the task's wall clock when it answered; 0: unknown
};

class WorkerClient {
 public:
  struct StatusQuestion {
    std::vector<std::string> sessions = {};  // sessions whose leases to renew
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
                             std::vector<Partition> partitions, const TrainingProgram& program,
                             const CallOptions& options, Done done) = 0;
  virtual void DeregisterGraph(const std::string& session, uint64_t graph,
                               const CallOptions& options, Done done) = 0;
  // Ends when the step's part has ended in the task. A worker in another process takes no feeds and
  // returns no fetches: the part in the master's own task does that.
  virtual void RunGraph(const RunGraphArgs& args, const CallOptions& options, Done done) = 0;
  // Makes the step's part end with `why`. Its RunGraph is answered when it has ended.
  virtual void AbortStep(int64_t step_id, const Status& why, const CallOptions& options,
                         Done done) = 0;
  // Stops waiting for the RunGraph of a step, which ends with Cancelled at once. The master calls
  // this if the task is lost, or does not end its part soon after an abort. Does nothing if the
  // worker is in this process.
  virtual void AbandonStep(int64_t step_id) = 0;
  virtual void Reset(const std::vector<std::string>& containers, const CallOptions& options,
                     Done done) = 0;
  // Asks the task to end its process in an orderly way.
  virtual void Shutdown(const std::string& reason, const CallOptions& options, Done done) = 0;

  // Returns the worker itself, if it is in this process; else null.
  virtual Worker* in_process() { return nullptr; }
};

// Makes a client that calls `worker`, which is borrowed, on the caller's thread.
std::unique_ptr<WorkerClient> NewDirectWorkerClient(Worker& worker);

}  // namespace penstock
