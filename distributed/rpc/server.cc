// SPDX-License-Identifier: Apache-2.0
//
// Server: from Create to Stop. Its parts are made in server_port.cc, server_task.cc and
// server_status.cc.
#include "distributed/rpc/server.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/blocking_calls.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/rooted_env.h"
#include "core/op/load_library.h"
#include "core/tensor/memory_account.h"
#include "distributed/rpc/detection.h"
#include "distributed/rpc/server_log.h"
#include "distributed/rpc/server_state.h"
#include "distributed/rpc/session_config.h"
#include "distributed/security/credentials.h"

namespace penstock {
namespace {

// The time that gRPC gets to send the last answers, after Stop has aborted all steps.
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);

}  // namespace

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
  state_->health_service.SetServing(false);
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
    s.health_service.SetServing(false);
    if (s.client_port != nullptr) s.client_port->Stop();
    if (s.task.has_value()) s.task->Stop();
    s.health_service.EndWatches();
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
