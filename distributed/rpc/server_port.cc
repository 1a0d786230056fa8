// SPDX-License-Identifier: Apache-2.0
//
// Server: its port, with the services and the transport behind it.
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "core/base/log.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/connections.h"
#include "distributed/rpc/listen_address.h"
#include "distributed/rpc/server_state.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {
namespace {

// One thread suffices, because it only hands work to other threads. A second thread would be woken
// by each event that comes while the first one is busy. With three threads, a transfer of 64 MB had
// only 0.55 to 0.75 times the rate that it has with one. For the same reason the server has no
// service of gRPC's callback interface, for which gRPC starts two polling threads of its own.
constexpr int kPollingThreads = 1;

// Makes settings of gRPC that apply to the whole process.
void SetUpGrpc() {
  static const bool once = [] {
    // gRPC locks with absl::Mutex, which by default, as Debian builds it, looks for cycles of locks
    // at each Lock, under one lock of the process. That took 6 % of a null step.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)once;
}

}  // namespace

// Binds the port and makes the services and the transport that use it. Calls wait until Listen,
// except health checks.
// Also sets `self`. InvalidArgument if the task has no address, or its address cannot be used.
Status Server::State::Bind() {
  const std::string wanted = options.task.address();
  if (wanted.empty()) {
    return InvalidArgument(options.task.name(), " has no address in the cluster (",
                           cluster.ToString(), ")");
  }
  ASSIGN_OR_RETURN(HostPort own, HostPort::Parse(wanted));
  ASSIGN_OR_RETURN(HostPort bound, FindListenAddress(own, options.task.listen_address));
  RETURN_IF_ERROR(CheckListenAddress(bound));
  SetUpGrpc();
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
  builder.RegisterService(&health_service.service());
  refused_calls.Register(&builder);
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
  health_service.Listen(*loop, *grpc_host.queue);
  bound.port = port;
  listens_at = bound.ToString();
  if (own.port == 0) own.port = port;
  self = {.name = options.task.name(),
          .address = own.ToString(),
          .incarnation = options.env->RandomU64() | 1};
  return OkStatus();
}

Status Server::State::MakeTransport(grpc::ServerBuilder* builder) {
  grpc_host = {.channels = &channels, .builder = builder};
  const auto log = [task = options.task.name()](const std::string& line) {
    Log({.task = task, .event = "transport", .text = line});
  };
  ASSIGN_OR_RETURN(transport, TransportFactory::Global().Make(options.task.protocol,
                                                              {.grpc = &grpc_host, .log = log}));
  return OkStatus();
}

// Returns InvalidArgument if the protocol cannot reach a task of the cluster.
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

void Server::State::Listen() {
  worker_service.Listen(*loop, *grpc_host.queue);
  master_service.Listen(task->master(), uploads, threads, *loop, *grpc_host.queue);
  insight_service.Listen({.task = &*task,
                          .replica = replica ? &*replica : nullptr,
                          .env = options.env,
                          .threads = &threads,
                          .channels = &channels,
                          .loop = &*loop},
                         *grpc_host.queue);
  replica_service.Listen({.replica = replica ? &*replica : nullptr, .threads = &threads}, *loop,
                         *grpc_host.queue);
  refused_calls.Listen(*loop, *grpc_host.queue);
  // The server's default configuration fills the fields that a client's ConfigProto leaves out.
  // SessionOptions do not show which fields those are, so there are no direct sessions if the
  // server has a default configuration.
  if (options.direct_sessions && options.default_session_config.empty()) task->PublishSessions();
  if (client_port != nullptr) client_port->Serve(*grpc_server);
  health_service.SetServing(true);
}

// Returns the addresses of the connected clients, in the form of ServerContext::peer().
absl::flat_hash_set<std::string> Server::State::Connected() {
  absl::flat_hash_set<std::string> clients = ConnectedClients();
  if (client_port != nullptr) {
    for (std::string& client : client_port->Connected()) clients.insert(std::move(client));
  }
  return clients;
}

}  // namespace penstock
