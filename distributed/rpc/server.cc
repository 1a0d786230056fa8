// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/join.h"
#include "core/base/thread_pool.h"
#include "distributed/rpc/calls/channel.h"
#include "distributed/rpc/grpc_worker_client.h"
#include "distributed/rpc/listen_address.h"
#include "distributed/rpc/master_service.h"
#include "distributed/rpc/worker_service.h"
#include "distributed/task/task.h"
#include "distributed/transport/grpc/grpc_transport.h"

namespace penstock {
namespace {

// It only hands work on. A second one would be woken for each event that the first is busy with:
// with three, a stream of 64 MB moved at 0.55 to 0.75 of the rate.
constexpr int kPollingThreads = 1;
// For answers that are on their way; everything that runs has been aborted before.
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);

void EnableServices() {
  static const bool once = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)once;
}

}  // namespace

struct Server::State {
  explicit State(const ServerOptions& o)
      : options(o),
        cluster(o.task.cluster),
        keepalive{.time_ms = static_cast<int>(o.keepalive_ms),
                  .timeout_ms = static_cast<int>(o.keepalive_timeout_ms)},
        channels(keepalive),
        threads("penstock", o.num_threads) {}

  const ServerOptions options;
  ClusterSpec cluster;
  const KeepaliveOptions keepalive;
  TaskId self;
  Channels channels;
  WorkerService worker_service;
  MasterService master_service;
  std::unique_ptr<grpc::Server> grpc_server;
  grpc::ServerCompletionQueue* queue = nullptr;  // the loop's
  std::optional<CompletionLoop> loop;
  std::optional<Task> task;

  std::mutex mu;
  bool started = false;
  bool stopped = false;

  // Destroyed first: what it still runs uses the others.
  ThreadPool threads;

  Status Bind();
  Status MakeTask();
  void Listen();
  void SetServing(bool serving);
};

Status Server::State::Bind() {
  const std::string wanted = options.task.address();
  if (wanted.empty()) {
    return InvalidArgument(options.task.name(), " has no address in the cluster (",
                           cluster.ToString(), ")");
  }
  ASSIGN_OR_RETURN(HostPort host_port, HostPort::Parse(wanted));
  RETURN_IF_ERROR(CheckListenAddress(host_port));
  EnableServices();
  grpc::ServerBuilder builder;
  SetServerArguments(keepalive, &builder);
  int port = 0;
  builder.AddListeningPort(wanted, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&worker_service.service());
  builder.RegisterService(&master_service.service());
  std::unique_ptr<grpc::ServerCompletionQueue> made = builder.AddCompletionQueue();
  queue = made.get();
  grpc_server = builder.BuildAndStart();
  loop.emplace(std::move(made), kPollingThreads);
  if (grpc_server == nullptr || port == 0) return InvalidArgument("cannot listen on ", wanted);
  SetServing(false);
  host_port.port = port;
  self = {.name = options.task.name(),
          .address = host_port.ToString(),
          .incarnation = options.env->RandomU64() | 1};
  return OkStatus();
}

Status Server::State::MakeTask() {
  ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(self.name));
  Task::Parts parts{
      .self = self,
      .env = options.env,
      .scheduler = &threads,
      .timer = options.timer,
      .registry = &Registry::Global(),
      .make_transport =
          [this](const TaskId& own, StepTable& steps) {
            return std::make_unique<GrpcTransport>(own, steps, channels, *loop);
          },
      .connect = [this](const TaskId& other) -> std::shared_ptr<WorkerClient> {
        return NewGrpcWorkerClient(other, channels.To(other.address), *options.env, *loop);
      },
      .health = {.interval_ms = options.heartbeat_ms, .misses_max = options.heartbeats_missed_max},
      .create_timeout_ms = options.create_session_timeout_ms,
      .idle_timeout_ms = options.session_idle_timeout_ms};
  ASSIGN_OR_RETURN(
      parts.devices,
      MakeDevices({.task = name, .incarnation = self.incarnation, .gpus_max = options.gpus_max}));
  task.emplace(std::move(parts));
  return OkStatus();
}

void Server::State::Listen() {
  worker_service.Listen(
      {.worker = &task->worker(),
       .threads = &threads,
       .env = options.env,
       .registry = &Registry::Global(),
       .shutdown = [this](const std::string& reason) { task->RequestShutdown(reason); }},
      *loop, *queue);
  master_service.Listen(task->master(), threads, *loop, *queue);
  // Defaults of the server are merged with what a client leaves out, which its messages alone show.
  if (options.direct_sessions && options.default_session_config.empty()) task->PublishSessions();
  SetServing(true);
}

void Server::State::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = grpc_server->GetHealthCheckService();
  health->SetServingStatus(serving);
  health->SetServingStatus("tensorflow.MasterService", serving);
  health->SetServingStatus("penstock.wire.Worker", serving);
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<Server>> Server::Create(const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server(std::make_unique<State>(options)));
  RETURN_IF_ERROR(server->state_->master_service.SetDefaultConfig(options.default_session_config));
  RETURN_IF_ERROR(server->state_->Bind());
  RETURN_IF_ERROR(server->state_->MakeTask());
  return server;
}

Server::~Server() { Stop(); }

const std::string& Server::address() const { return state_->self.address; }
std::string Server::target() const { return StrCat("grpc://", address()); }
std::string Server::task() const { return state_->self.name; }
uint64_t Server::incarnation() const { return state_->self.incarnation; }

Status Server::SetCluster(const ClusterSpec& cluster) {
  if (state_->started) return FailedPrecondition("SetCluster: the server has been started");
  const TaskConfig& task = state_->options.task;
  if (cluster.Address(task.job, task.task) != address()) {
    return InvalidArgument("SetCluster: ", task.name(), " is at ", address(),
                           ", the cluster says '", cluster.Address(task.job, task.task), "'");
  }
  state_->cluster = cluster;
  return OkStatus();
}

Status Server::Start() {
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    if (state_->stopped) return FailedPrecondition("Start: the server has been stopped");
    if (std::exchange(state_->started, true)) return OkStatus();
  }
  state_->task->Start(state_->cluster);
  state_->Listen();
  return OkStatus();
}

void Server::Join() { state_->task->Join(); }
void Server::RequestShutdown(const std::string& reason) { state_->task->RequestShutdown(reason); }
std::string Server::shutdown_reason() const { return state_->task->shutdown_reason(); }

void Server::Stop() {
  State& s = *state_;
  {
    std::lock_guard<std::mutex> lock(s.mu);
    if (std::exchange(s.stopped, true)) return;
  }
  if (!s.loop.has_value()) return;  // was not bound
  if (s.grpc_server != nullptr) {
    s.SetServing(false);
    if (s.task.has_value()) s.task->Stop();
    s.grpc_server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    s.master_service.WaitForCalls();
    if (s.task.has_value()) s.task->WaitForSessions();
  }
  s.loop->Stop();
}

Server::Counts Server::counts() const {
  const StepTable::Counts steps = state_->task->worker().steps().counts();
  return {.running_steps = steps.running, .parked_subscriptions = steps.parked};
}

Status ShutdownTask(const std::string& address, const std::string& reason, int64_t timeout_ms,
                    Env& env) {
  ASSIGN_OR_RETURN(const HostPort parsed, HostPort::Parse(address));
  CompletionLoop loop(std::make_unique<grpc::CompletionQueue>(), 1);
  const auto client = NewGrpcWorkerClient({.name = "the task", .address = parsed.ToString()},
                                          NewChannel(parsed.ToString(), {}), env, loop);
  Wait wait(Scheduler::Real(), "a task to be told to end");
  client->Shutdown(reason, {.timeout_ms = timeout_ms}, wait.done());
  const Status status = wait.Get();
  loop.Stop();
  return status;
}

}  // namespace penstock
