// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/blocking_calls.h"
#include "core/base/join.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/rooted_env.h"
#include "core/base/thread_pool.h"
#include "core/op/load_library.h"
#include "core/tensor/memory_account.h"
#include "distributed/calibration/calibrate.h"
#include "distributed/insight/status_server.h"
#include "distributed/insight/stuck_watch.h"
#include "distributed/insight/task_report.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/connections.h"
#include "distributed/calls/grpc_host.h"
#include "distributed/rpc/detection.h"
#include "distributed/rpc/grpc_worker_client.h"
#include "distributed/rpc/insight_service.h"
#include "distributed/rpc/listen_address.h"
#include "distributed/rpc/master_service.h"
#include "distributed/rpc/replica_service.h"
#include "distributed/security/client_port.h"
#include "distributed/security/credentials.h"
#include "distributed/security/peer_user.h"
#include "distributed/rpc/server_log.h"
#include "distributed/rpc/session_config.h"
#include "distributed/rpc/worker_service.h"
#include "distributed/task/free_memory.h"
#include "distributed/task/task.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {
namespace {

// The thread only hands work on. A second one would be woken by each event that comes while the
// first is busy: with three threads, the rate of a stream of 64 MB fell to 0.55 to 0.75 of that
// with one.
constexpr int kPollingThreads = 1;
// How often the master looks for steps that make no progress.
constexpr int64_t kWatchNanos = 5'000'000'000;
// The time that gRPC gets to send pending answers. All steps have been aborted before.
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);
// The exit code of a process that the other replica has taken over from. It asks the supervisor to
// start the process again.
constexpr int kFencedExitCode = 143;

// Keeps pushes well below the limit for requests, which the other replica has, too. A push may
// exceed the limit for values by its last record, and also has other fields.
void LimitPushes(int message_bytes_max, Replica::Options* replica) {
  if (message_bytes_max <= 0) return;
  const int64_t most = message_bytes_max / 8;
  replica->push_bytes_max = std::min(replica->push_bytes_max, most);
  replica->piece_bytes = std::min(replica->piece_bytes, most);
}

void EnableServices() {
  static const bool once = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)once;
}

// Returns the token of "Bearer TOKEN", or the password of "Basic", which browsers ask their users
// for.
std::string TokenOf(const std::string& authorization) {
  absl::string_view value = authorization;
  if (absl::ConsumePrefix(&value, "Bearer ")) return std::string(value);
  std::string user_and_password;
  if (!absl::ConsumePrefix(&value, "Basic ") || !absl::Base64Unescape(value, &user_and_password)) {
    return "";
  }
  const size_t colon = user_and_password.find(':');
  return colon == std::string::npos ? "" : user_and_password.substr(colon + 1);
}

}  // namespace

struct Server::State {
  State(const ServerOptions& o, std::shared_ptr<const Credentials> c,
        std::unique_ptr<RootedEnv> rooted)
      : options(o),
        credentials(std::move(c)),
        files(std::move(rooted)),
        cluster(o.task.cluster),
        keepalive{.time_ms = static_cast<int>(o.keepalive_ms),
                  .timeout_ms = static_cast<int>(o.keepalive_timeout_ms)},
        channels(keepalive, credentials),
        stop_requested(Scheduler::Real(), "a server to be stopped"),
        threads("penstock", o.num_threads) {}

  const ServerOptions options;
  const std::shared_ptr<const Credentials> credentials;
  const std::unique_ptr<RootedEnv> files;  // null: ops may use all files
  ClusterSpec cluster;
  const KeepaliveOptions keepalive;
  TaskId self;
  std::string listens_at;
  Channels channels;
  WorkerService worker_service;
  MasterService master_service;
  InsightService insight_service;
  ReplicaService replica_service;
  GrpcHost grpc_host;
  // Outlives the server, with which its service may be registered.
  std::unique_ptr<Transport> transport;
  std::unique_ptr<grpc::Server> grpc_server;
  std::unique_ptr<ClientPort> client_port;
  std::optional<CompletionLoop> loop;
  std::optional<StepCalls> calls;  // outlives the task, whose steps send their answers by it
  std::unique_ptr<ReplicaLog> log;  // null unless the task has replicas; outlives the task
  std::optional<Task> task;
  std::optional<Replica> replica;
  std::unique_ptr<StatusServer> status;
  std::unique_ptr<Thread> stuck_watch;

  Mutex mu;
  bool started ABSL_GUARDED_BY(mu) = false;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  Status start_error ABSL_GUARDED_BY(mu);  // the result of Start, for later calls of it
  Condition stop_requested;                // `stopped` has changed

  // Destroyed first, because the closures that it still runs use the other members.
  ThreadPool threads;

  Status Bind();
  Status MakeTransport(grpc::ServerBuilder* builder);
  Status CheckHosts() const;
  Status MakeTask();
  Status MakeReplica();
  StatusOr<std::string> WitnessAddress() const;
  void Listen();
  StatusOr<HostPort> StatusAddress() const;
  std::vector<std::string> StatusNames() const;
  wire::ClusterReport AskCluster();
  Status Admit(const StatusServer::Visitor& visitor) const;
  Status ShowStatus();
  void WatchSteps();
  absl::flat_hash_set<std::string> Connected();
  void SetServing(bool serving);
};

Status Server::State::MakeTransport(grpc::ServerBuilder* builder) {
  grpc_host = {.channels = &channels, .builder = builder};
  const auto log = [task = options.task.name()](const std::string& line) {
    Log({.task = task, .event = "transport", .text = line});
  };
  ASSIGN_OR_RETURN(transport, TransportFactory::Global().Make(options.task.protocol,
                                                              {.grpc = &grpc_host, .log = log}));
  return OkStatus();
}

// InvalidArgument if the protocol cannot reach a task of the cluster.
Status Server::State::CheckHosts() const {
  if (!transport->capabilities().needs_same_host) return OkStatus();
  ASSIGN_OR_RETURN(const HostPort own, HostPort::Parse(self.address));
  for (const auto& [job, tasks] : cluster.jobs()) {
    for (const auto& [index, address] : tasks) {
      ASSIGN_OR_RETURN(const HostPort other, HostPort::Parse(address));
      if (other.host == own.host) continue;
      return InvalidArgument("--protocol: '", transport->protocol(),
                             "' joins tasks of one host; /job:", job, "/task:", index, " is at ",
                             address, ", ", self.ToString());
    }
  }
  return OkStatus();
}

Status Server::State::Bind() {
  const std::string wanted = options.task.address();
  if (wanted.empty()) {
    return InvalidArgument(options.task.name(), " has no address in the cluster (",
                           cluster.ToString(), ")");
  }
  ASSIGN_OR_RETURN(HostPort own, HostPort::Parse(wanted));
  ASSIGN_OR_RETURN(HostPort bound, FindListenAddress(own, options.task.listen_address));
  RETURN_IF_ERROR(CheckListenAddress(bound));
  EnableServices();
  grpc::ServerBuilder builder;
  SetServerArguments(keepalive, &builder, options.max_message_bytes);
  if (credentials->secured() || options.max_message_bytes > 0) {
    // gRPC checks sizes only after decompression, so it must not decompress messages.
    builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  }
  if (!options.insecure_client_address.empty()) {
    ASSIGN_OR_RETURN(client_port, ClientPort::Listen(options.insecure_client_address));
  }
  int port = 0;
  builder.AddListeningPort(bound.ToString(), credentials->NewServerCredentials(), &port);
  builder.RegisterService(&worker_service.service());
  builder.RegisterService(&master_service.service());
  builder.RegisterService(&insight_service.service());
  builder.RegisterService(&replica_service.service());
  RETURN_IF_ERROR(MakeTransport(&builder));
  std::unique_ptr<grpc::ServerCompletionQueue> made = builder.AddCompletionQueue();
  grpc_host.queue = made.get();
  grpc_server = builder.BuildAndStart();
  loop.emplace(std::move(made), kPollingThreads);
  grpc_host.builder = nullptr;
  grpc_host.loop = &*loop;
  if (grpc_server == nullptr || port == 0) {
    return InvalidArgument("cannot listen on ", bound.ToString());
  }
  SetServing(false);
  bound.port = port;
  listens_at = bound.ToString();
  if (own.port == 0) own.port = port;
  self = {.name = options.task.name(),
          .address = own.ToString(),
          .incarnation = options.env->RandomU64() | 1};
  return OkStatus();
}

absl::flat_hash_set<std::string> Server::State::Connected() {
  absl::flat_hash_set<std::string> clients = ConnectedClients();
  if (client_port != nullptr) {
    for (std::string& client : client_port->Connected()) clients.insert(std::move(client));
  }
  return clients;
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
        return NewGrpcWorkerClient(other, channels, *options.env, *loop, &*calls);
      },
      .health = {.interval_ms = options.heartbeat_ms, .misses_max = options.heartbeats_missed_max},
      .create_timeout_ms = options.create_session_timeout_ms,
      .idle_timeout_ms = options.session_idle_timeout_ms,
      .connected_clients = [this] { return Connected(); },
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
  worker_service.Use({.worker = &task->worker(),
                      .threads = &threads,
                      .env = options.env,
                      .registry = &Registry::Global(),
                      .calls = &*calls,
                      .shutdown = [this](const std::string& reason) {
                        task->RequestShutdown(reason);
                      }});
  return OkStatus();
}

// Returns the address of the first worker, or the chief, because training needs that task anyway.
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
  task->worker().set_step_gate(log.get());
  task->worker().set_serving(false);
  const std::string& other = config.replica == 0 ? second : first;
  Replica::Options replicas{
      .task = self.name,
      .incarnation = self.incarnation,
      .index = config.replica,
      .other = other,
      .store = stores[0].resources,
      .log = log.get(),
      .env = options.env,
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
            std::_Exit(kFencedExitCode);  // sessions that use this process must not go on
          },
      .say =
          [task = self.name](const std::string& line) {
            Log({.task = task, .event = "replica", .text = line});
          }};
  LimitPushes(options.max_message_bytes, &replicas);
  replica.emplace(std::move(replicas));
  return OkStatus();
}

void Server::State::Listen() {
  worker_service.Listen(*loop, *grpc_host.queue);
  master_service.Listen(task->master(), threads, *loop, *grpc_host.queue);
  insight_service.Listen({.task = &*task,
                          .replica = replica ? &*replica : nullptr,
                          .env = options.env,
                          .threads = &threads,
                          .channels = &channels,
                          .loop = &*loop},
                         *grpc_host.queue);
  replica_service.Listen({.replica = replica ? &*replica : nullptr, .threads = &threads}, *loop,
                         *grpc_host.queue);
  // The server's defaults fill the fields that a client leaves out. Only the client's messages show
  // which fields these are, so direct sessions are not possible with defaults.
  if (options.direct_sessions && options.default_session_config.empty()) task->PublishSessions();
  if (client_port != nullptr) client_port->Serve(*grpc_server);
  SetServing(true);
}

// Returns the address of the status page: the host at which the task itself listens, with the port
// of the page. HTTP is not encrypted, so the page of a secured task stays on its host.
StatusOr<HostPort> Server::State::StatusAddress() const {
  ASSIGN_OR_RETURN(HostPort address, HostPort::Parse(listens_at));
  if (credentials->secured()) address.host = "127.0.0.1";
  address.port = options.task.status_port;
  return address;
}

wire::ClusterReport Server::State::AskCluster() {
  wire::ClusterReport report;
  Wait wait(Scheduler::Real(), "the reports of the tasks of a cluster");
  insight_service.AskCluster(InsightService::kTimeoutMs,
                             [&, done = wait.done()](wire::ClusterReport answer) mutable {
                               report = std::move(answer);
                               std::move(done)(OkStatus());
                             });
  (void)wait.Get();
  return report;
}

Status Server::State::Admit(const StatusServer::Visitor& visitor) const {
  if (!credentials->secured()) return OkStatus();
  if (credentials->tokens().Contains(TokenOf(visitor.authorization))) return OkStatus();
  const Status user =
      CheckLoopbackPeer(visitor.host, visitor.port, "127.0.0.1", options.task.status_port);
  return Annotate(user, "this page wants the cluster's token, as bearer or as password");
}

// Returns the names that requests for the status page may use, in addition to numeric addresses.
std::vector<std::string> Server::State::StatusNames() const {
  std::vector<std::string> names = options.status_hosts;
  for (const std::string& address : {listens_at, self.address}) {
    const StatusOr<HostPort> parsed = HostPort::Parse(address);
    if (parsed.ok()) names.push_back(parsed->host);
  }
  char host[HOST_NAME_MAX + 1] = "";
  if (gethostname(host, sizeof(host) - 1) == 0) names.push_back(host);
  return names;
}

Status Server::State::ShowStatus() {
  if (options.task.status_port == 0) return OkStatus();
  ASSIGN_OR_RETURN(const HostPort address, StatusAddress());
  ASSIGN_OR_RETURN(
      status, StatusServer::Create(address,
                                   {.task = [this] { return insight_service.Report(); },
                                    .cluster = [this] { return AskCluster(); },
                                    .admit = [this](const auto& visitor) { return Admit(visitor); },
                                    .names = StatusNames()}));
  return OkStatus();
}

void Server::State::WatchSteps() {
  StuckWatch watch({.patience_ms = options.stuck_after_ms,
                    .ask_task = [this] { return ReportTask(*task, *options.env); },
                    .ask_cluster = [this] { return AskCluster(); },
                    .say =
                        [this](const std::string& text) {
                          Log({.level = LogLevel::kWarning,
                               .task = self.name,
                               .event = "no_progress",
                               .text = text});
                        }});
  const int64_t interval_ns = std::min(kWatchNanos, options.stuck_after_ms * 1'000'000);
  MutexLock lock(mu);
  const auto is_stopped = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return stopped; };
  while (!stop_requested.WaitUntil(mu, options.env->NowNanos() + interval_ns, is_stopped)) {
    lock.Unlock();
    watch.Look();
    lock.Lock();
  }
}

void Server::State::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = grpc_server->GetHealthCheckService();
  health->SetServingStatus(serving);
  health->SetServingStatus("tensorflow.MasterService", serving);
  health->SetServingStatus("penstock.wire.Worker", serving);
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<Server>> Server::Create(const ServerOptions& options) {
  RETURN_IF_ERROR(CheckDetection(options));
  if (options.memory_limit > 0) MemoryAccount::Task().set_limit(options.memory_limit);
  RETURN_IF_ERROR(LoadLibrariesOfEnvironment());
  RETURN_IF_ERROR(LogOptionsOfEnvironment({}).status());
  SecuritySettings security;
  if (options.security.has_value()) {
    security = *options.security;
  } else {
    ASSIGN_OR_RETURN(security, ProcessSecurity());
  }
  ASSIGN_OR_RETURN(auto credentials, Credentials::Load(security, Credentials::Role::kTask));
  std::unique_ptr<RootedEnv> files;
  if (!security.file_root.empty()) {
    ASSIGN_OR_RETURN(
        files, RootedEnv::Create(*options.env, security.file_root, NameOfSetting("file_root")));
  }
  ServerOptions wanted = options;
  ASSIGN_OR_RETURN(const int num_threads, NumThreadsOf(options.default_session_config));
  if (wanted.num_threads == 0) wanted.num_threads = num_threads;
  std::unique_ptr<Server> server(
      new Server(std::make_unique<State>(wanted, std::move(credentials), std::move(files))));
  server->state_->master_service.SetLimits(
      {.max_sessions_per_client = options.max_sessions_per_client,
       .max_steps_in_flight = options.max_steps_in_flight});
  RETURN_IF_ERROR(server->state_->master_service.SetDefaultConfig(options.default_session_config));
  RETURN_IF_ERROR(server->state_->Bind());
  RETURN_IF_ERROR(server->state_->MakeTask());
  SetLogTask(server->state_->self.name);
  return server;
}

Server::~Server() { Stop(); }

const std::string& Server::address() const { return state_->self.address; }
std::string Server::target() const { return StrCat("grpc://", address()); }
const std::string& Server::listens_at() const { return state_->listens_at; }
std::string Server::status_url() const {
  if (state_->options.task.status_port == 0) return "";
  const StatusOr<HostPort> address = state_->StatusAddress();
  CHECK_OK(address.status());
  return StrCat("http://", address->ToString(), "/");
}
std::string Server::task() const { return state_->self.name; }
std::string Server::insecure_client_address() const {
  return state_->client_port == nullptr ? "" : state_->client_port->address();
}
const std::vector<std::string>& Server::warnings() const { return state_->credentials->warnings(); }
uint64_t Server::incarnation() const { return state_->self.incarnation; }

Status Server::SetCluster(const ClusterSpec& cluster) {
  MutexLock lock(state_->mu);
  if (state_->started) return FailedPrecondition("SetCluster: the server has been started");
  TaskConfig task = state_->options.task;
  task.cluster = cluster;
  if (task.address() != address()) {
    return InvalidArgument("SetCluster: ", task.name(), " is at ", address(),
                           ", the cluster says '", task.address(), "'");
  }
  state_->cluster = cluster;
  return OkStatus();
}

Status Server::Start() {
  {
    MutexLock lock(state_->mu);
    if (state_->stopped) return FailedPrecondition("Start: the server has been stopped");
    if (std::exchange(state_->started, true)) return state_->start_error;
  }
  Status begun = state_->CheckHosts();
  if (begun.ok()) begun = state_->MakeReplica();
  if (begun.ok()) begun = state_->task->Start(state_->cluster);
  if (!begun.ok()) {
    MutexLock lock(state_->mu);
    return state_->start_error = begun;
  }
  state_->Listen();
  if (state_->replica) state_->replica->Start();
  const Status shown = state_->ShowStatus();
  if (!shown.ok()) {
    MutexLock lock(state_->mu);
    return state_->start_error = shown;
  }
  if (state_->options.stuck_after_ms > 0) {
    state_->stuck_watch =
        Scheduler::Real().StartThread("stuck watch", [s = state_.get()] { s->WatchSteps(); });
  }
  LogStarted({.task = task(),
              .target = target(),
              .listens_at = listens_at(),
              .protocol = std::string(state_->transport->protocol()),
              .secured = state_->credentials->secured(),
              .status_url = status_url(),
              .memory_limit = memory_limit(),
              .threads = state_->threads.num_threads(),
              .incarnation = incarnation(),
              .detection = DescribeDetection(state_->options),
              .cluster = state_->cluster.ToString()});
  return OkStatus();
}

void Server::Join() { state_->task->Join(); }
void Server::RequestShutdown(const std::string& reason) { state_->task->RequestShutdown(reason); }
std::string Server::shutdown_reason() const { return state_->task->shutdown_reason(); }

int64_t Server::memory_limit() { return MemoryAccount::Task().limit(); }

bool Server::in_use() const { return state_->task->in_use(); }

void Server::Drain(int64_t grace_ms) {
  LogDraining(task(), shutdown_reason(), grace_ms);
  state_->SetServing(false);
  state_->task->Drain(grace_ms);
}

std::string Server::DescribeRunning() const {
  std::vector<std::string> running = BlockingCall::List(*state_->options.env);
  for (const int64_t step : state_->task->worker().steps().running()) {
    running.push_back(StrCat("step ", step));
  }
  return absl::StrJoin(running, "; ");
}

void Server::Stop() {
  State& s = *state_;
  bool served = false;
  {
    MutexLock lock(s.mu);
    if (std::exchange(s.stopped, true)) return;
    served = s.started && s.start_error.ok();
    s.stop_requested.NotifyAll();
  }
  s.stuck_watch = nullptr;
  if (!s.loop.has_value()) return;  // the port was not bound
  s.status = nullptr;
  if (s.replica) s.replica->Stop();
  if (s.grpc_server != nullptr) {
    s.SetServing(false);
    if (s.client_port != nullptr) s.client_port->Stop();
    if (s.task.has_value()) s.task->Stop();
    s.grpc_server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    s.master_service.WaitForCalls();
    s.insight_service.WaitForCalls();
    if (s.task.has_value()) s.task->WaitForSessions();
    s.transport->Stop();
  }
  s.loop->Stop();
  if (s.task.has_value()) s.task->WaitForSteps();
  if (served) Log({.task = s.self.name, .event = "server_ended", .text = "has ended"});
}

Server::Counts Server::counts() const {
  const StepTable::Counts steps = state_->task->worker().steps().counts();
  return {.running_steps = steps.running, .parked_subscriptions = steps.parked};
}

}  // namespace penstock
