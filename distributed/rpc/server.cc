// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/join.h"
#include "core/base/mutex.h"
#include "distributed/master/in_process_master.h"
#include "distributed/master/master.h"
#include "distributed/rpc/calls/channel.h"
#include "distributed/rpc/grpc_worker_client.h"
#include "distributed/rpc/listen_address.h"
#include "distributed/rpc/master_service.h"
#include "distributed/rpc/worker_service.h"
#include "distributed/transport/grpc/grpc_transport.h"

namespace penstock {
namespace {

// It only hands work on. A second one would be woken for each event that the first is busy with:
// with three, a stream of 64 MB moved at 0.55 to 0.75 of the rate.
constexpr int kPollingThreads = 1;
constexpr auto kHousekeepingPeriod = std::chrono::seconds(5);
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
  Env& env = Env::Real();
  DeadlineTimer& timer = DeadlineTimer::Real();
  const KeepaliveOptions keepalive;
  TaskId self;
  Channels channels;
  WorkerService worker_service;
  MasterService master_service;
  std::unique_ptr<grpc::Server> grpc_server;
  grpc::ServerCompletionQueue* queue = nullptr;  // the loop's
  std::optional<CompletionLoop> loop;
  std::optional<Worker> worker;
  std::optional<GrpcTransport> transport;
  std::optional<Master> master;
  std::optional<InProcessMaster> in_process;

  Mutex mu;
  CondVar changed;
  bool started ABSL_GUARDED_BY(mu) = false;
  bool shutdown_requested ABSL_GUARDED_BY(mu) = false;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  std::string shutdown_reason ABSL_GUARDED_BY(mu);
  std::thread housekeeping;

  // Destroyed first: what it still runs uses the others.
  ThreadPool threads;

  Status Bind();
  Status MakeWorker();
  void MakeMaster();
  void Listen();
  void KeepHouse();
  void SetServing(bool serving);
  void RequestShutdown(const std::string& reason);
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
          .incarnation = env.RandomU64() | 1};
  return OkStatus();
}

Status Server::State::MakeWorker() {
  ASSIGN_OR_RETURN(const DeviceName task, DeviceName::Parse(self.name));
  Worker::Options made{.self = self, .threads = &threads, .env = &env, .timer = &timer};
  ASSIGN_OR_RETURN(
      made.devices,
      MakeDevices({.task = task, .incarnation = self.incarnation, .gpus_max = options.gpus_max}));
  worker.emplace(std::move(made));
  transport.emplace(self, worker->steps(), channels, *loop);
  worker->set_transport(&*transport);
  return OkStatus();
}

void Server::State::MakeMaster() {
  master.emplace(Master::Options{
      .cluster = cluster,
      .worker = &*worker,
      .connect = [this](const TaskId& task) -> std::shared_ptr<WorkerClient> {
        return NewGrpcWorkerClient(task, channels.To(task.address), env, *loop);
      },
      .services = {.env = &env, .timer = &timer, .threads = &threads},
      .registry = &Registry::Global(),
      .health = {.interval_ms = options.heartbeat_ms, .misses_max = options.heartbeats_missed_max},
      .create_timeout_ms = options.create_session_timeout_ms,
      .idle_timeout_ms = options.session_idle_timeout_ms});
}

void Server::State::Listen() {
  worker_service.Listen(
      {.worker = &*worker,
       .threads = &threads,
       .env = &env,
       .registry = &Registry::Global(),
       .shutdown = [this](const std::string& reason) { RequestShutdown(reason); }},
      *loop, *queue);
  master_service.Listen(*master, threads, *loop, *queue);
  // Defaults of the server are merged with what a client leaves out, which its messages alone show.
  if (options.direct_sessions && options.default_session_config.empty()) {
    in_process.emplace(self.address, *master);
  }
  SetServing(true);
}

void Server::State::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = grpc_server->GetHealthCheckService();
  health->SetServingStatus(serving);
  health->SetServingStatus("tensorflow.MasterService", serving);
  health->SetServingStatus("penstock.wire.Worker", serving);
}

void Server::State::KeepHouse() {
  MutexLock lock(mu);
  for (;;) {
    const auto next = std::chrono::steady_clock::now() + kHousekeepingPeriod;
    while (!stopped && changed.WaitUntil(mu, next)) {
    }
    if (stopped) return;
    lock.Unlock();
    worker->ReapSessions();
    master->CloseIdleSessions();
    lock.Lock();
  }
}

void Server::State::RequestShutdown(const std::string& reason) {
  MutexLock lock(mu);
  if (std::exchange(shutdown_requested, true)) return;
  shutdown_reason = reason;
  changed.NotifyAll();
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<Server>> Server::Create(const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server(std::make_unique<State>(options)));
  RETURN_IF_ERROR(server->state_->master_service.SetDefaultConfig(options.default_session_config));
  RETURN_IF_ERROR(server->state_->Bind());
  RETURN_IF_ERROR(server->state_->MakeWorker());
  return server;
}

Server::~Server() { Stop(); }

const std::string& Server::address() const { return state_->self.address; }
std::string Server::target() const { return StrCat("grpc://", address()); }
std::string Server::task() const { return state_->self.name; }
uint64_t Server::incarnation() const { return state_->self.incarnation; }

Status Server::SetCluster(const ClusterSpec& cluster) {
  MutexLock lock(state_->mu);
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
    MutexLock lock(state_->mu);
    if (state_->stopped) return FailedPrecondition("Start: the server has been stopped");
    if (std::exchange(state_->started, true)) return OkStatus();
  }
  state_->MakeMaster();
  state_->Listen();
  state_->housekeeping = std::thread([state = state_.get()] { state->KeepHouse(); });
  return OkStatus();
}

void Server::Join() {
  MutexLock lock(state_->mu);
  while (!state_->shutdown_requested && !state_->stopped) state_->changed.Wait(state_->mu);
}

void Server::RequestShutdown(const std::string& reason) { state_->RequestShutdown(reason); }

std::string Server::shutdown_reason() const {
  MutexLock lock(state_->mu);
  return state_->shutdown_reason;
}

void Server::Stop() {
  State& s = *state_;
  {
    MutexLock lock(s.mu);
    if (std::exchange(s.stopped, true)) return;
    s.changed.NotifyAll();
  }
  if (!s.loop.has_value()) return;  // was not bound
  if (s.housekeeping.joinable()) s.housekeeping.join();
  if (s.grpc_server != nullptr) {
    s.SetServing(false);
    if (s.in_process.has_value()) s.in_process->Refuse();
    if (s.master.has_value()) s.master->Stop();
    if (s.worker.has_value()) {
      s.worker->steps().AbortAll(Unavailable(s.self.ToString(), " is shutting down"));
    }
    s.grpc_server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    s.master_service.WaitForCalls();
    s.in_process.reset();
  }
  s.loop->Stop();
}

Server::Counts Server::counts() const {
  const StepTable::Counts steps = state_->worker->steps().counts();
  return {.running_steps = steps.running, .parked_subscriptions = steps.parked};
}

Status ShutdownTask(const std::string& address, const std::string& reason, int64_t timeout_ms) {
  ASSIGN_OR_RETURN(const HostPort parsed, HostPort::Parse(address));
  CompletionLoop loop(std::make_unique<grpc::CompletionQueue>(), 1);
  const auto client = NewGrpcWorkerClient({.name = "the task", .address = parsed.ToString()},
                                          NewChannel(parsed.ToString(), {}), Env::Real(), loop);
  Wait wait;
  client->Shutdown(reason, {.timeout_ms = timeout_ms}, wait.done());
  const Status status = wait.Get();
  loop.Stop();
  return status;
}

}  // namespace penstock
