// SPDX-License-Identifier: Apache-2.0
//
// Server: its Task, and its Replica if it is a parameter server with two replicas.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "distributed/calibration/calibrate.h"
#include "distributed/rpc/grpc_worker_client.h"
#include "distributed/rpc/server_state.h"
#include "distributed/task/free_memory.h"

namespace penstock {
namespace {

// The exit code of a process that was the primary until the other replica took over. The code asks
// the supervisor to start the process again.
constexpr int kFencedExitCode = 143;

// Keeps pushes well below the other replica's limit for the size of requests, which should be the
// same as this one's. A push may exceed push_bytes_max by its last record and by its other fields.
void LimitPushes(int message_bytes_max, Replica::Options* replica) {
  if (message_bytes_max <= 0) return;
  const int64_t most = message_bytes_max / 8;
  replica->push_bytes_max = std::min(replica->push_bytes_max, most);
  replica->piece_bytes = std::min(replica->piece_bytes, most);
}

// Returns the limits above which graphs are sent to other tasks in parts, which takes less memory
// than one message. Expects that the other tasks have the same limit for the size of requests.
PieceLimits UploadLimits(int message_bytes_max) {
  PieceLimits limits = GraphUpload::kLimits;
  limits.whole_bytes_max = 64 << 20;
  if (message_bytes_max > 0) {
    limits.whole_bytes_max = std::min<int64_t>(limits.whole_bytes_max, message_bytes_max / 2);
  }
  return limits;
}

}  // namespace

// Returns whether the task's master or worker has the session.
bool Server::State::HasSession(const std::string& handle) {
  if (task->master().FindSession(handle).ok()) return true;
  for (const Worker::SessionUse& session : task->worker().session_memory()) {
    if (session.session == handle) return true;
  }
  return false;
}

Status Server::State::MakeTask() {
  ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(self.name));
  Task::Parts parts{
      .self = self,
      .env = files != nullptr ? files.get() : options.env,
      .scheduler = &threads,
      .timer = options.timer,
      .registry = &Registry::Global(),
      .transport = transport.get(),
      .connect = [this](const TaskId& other) -> std::shared_ptr<WorkerClient> {
        return NewGrpcWorkerClient(other, channels, *options.env, threads, *loop, &*calls,
                                   UploadLimits(options.max_message_bytes));
      },
      .health = {.interval_ms = options.heartbeat_ms, .misses_max = options.heartbeats_missed_max},
      .create_timeout_ms = options.create_session_timeout_ms,
      .idle_timeout_ms = options.session_idle_timeout_ms,
      .connected_clients = [this] { return Connected(); },
      .drop_unused =
          [this] {
            return uploads.DropIdle([this](const std::string& handle) {
              return HasSession(handle);
            });
          },
      .return_memory = ReturnFreeMemory,
      .memory = {.session = options.session_memory_limit, .step = options.step_memory_limit}};
  if (const auto& file = options.calibration_file; file.has_value())
    UseMeasuredRates(*file, self.name, {&Registry::Global(), &threads, options.env, options.timer});
  ASSIGN_OR_RETURN(parts.devices, MakeDevices({.task = name,
                                               .incarnation = self.incarnation,
                                               .gpus_max = options.gpus_max,
                                               .lanes = threads.num_threads()}));
  calls.emplace(self, *transport, *options.env);
  task.emplace(std::move(parts));
  task->worker().steps().set_calls(&calls->steps());
  worker_service.Use(
      {.worker = &task->worker(),
       .threads = &threads,
       .env = options.env,
       .registry = &Registry::Global(),
       .uploads = &uploads,
       .calls = &*calls,
       .shutdown = [this](const std::string& reason) { task->RequestShutdown(reason); }});
  return OkStatus();
}

// Returns the address of the witness: the chief or, if there is none, the first worker, because
// training needs that task anyway. InvalidArgument if the cluster has neither.
StatusOr<std::string> Server::State::WitnessAddress() const {
  for (const char* job : {"chief", "master", "worker"}) {
    const auto tasks = cluster.jobs().find(job);
    if (tasks != cluster.jobs().end() && !tasks->second.empty()) {
      return tasks->second.begin()->second;
    }
  }
  return InvalidArgument(
      "--ps_replica_hosts: the cluster has no worker to decide between replicas");
}

// Returns the options of the Replica, without the store. `other` and `witness` are addresses.
Replica::Options Server::State::ReplicaOptions(const std::string& other,
                                               const std::string& witness) {
  return {.task = self.name,
          .incarnation = self.incarnation,
          .index = options.task.replica,
          .other = other,
          .log = log.get(),
          .env = files != nullptr ? files.get() : options.env,
          .scheduler = &threads,
          .peer = NewGrpcReplicaClient(other, channels, *loop),
          .witness = NewGrpcReplicaClient(witness, channels, *loop),
          .serve = [this] { task->worker().set_serving(true); },
          .fenced =
              [task = self.name](const Status& why) {
                Log({.level = LogLevel::kError,
                     .task = task,
                     .event = "fenced",
                     .text = std::string(why.message())});
                std::fflush(stdout);
                // Ends the process at once: sessions that use this replica must not continue.
                std::_Exit(kFencedExitCode);
              },
          .say =
              [task = self.name](const std::string& line) {
                Log({.task = task, .event = "replica", .text = line});
              }};
}

// Makes the Replica and its log if this task is a parameter server with two replicas.
Status Server::State::MakeReplica() {
  const TaskConfig& config = options.task;
  const std::string first = cluster.Address(config.job, config.task);
  const std::string second = cluster.ReplicaAddress(config.job, config.task);
  if (second.empty()) return OkStatus();
  const std::vector<Worker::Store> stores = task->worker().stores();
  if (stores.size() != 1) {
    return InvalidArgument("--ps_replica_hosts: ", self.name, " has ", stores.size(),
                           " devices, but only what is on a CPU is replicated; hide its GPUs "
                           "(CUDA_VISIBLE_DEVICES=)");
  }
  ASSIGN_OR_RETURN(const std::string witness, WitnessAddress());
  log = std::make_unique<ReplicaLog>(*options.env, threads);
  RETURN_IF_ERROR(stores[0].resources->AttachLog(log.get()));
  log->RemoveRefusedFrom(stores[0].resources);
  task->worker().set_step_gate(log.get());
  task->worker().set_serving(false);
  const std::string& other = config.replica == 0 ? second : first;
  Replica::Options replicas = ReplicaOptions(other, witness);
  replicas.store = stores[0].resources;
  LimitPushes(options.max_message_bytes, &replicas);
  replica.emplace(std::move(replicas));
  return OkStatus();
}

}  // namespace penstock
