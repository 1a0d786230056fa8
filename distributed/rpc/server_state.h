// SPDX-License-Identifier: Apache-2.0
//
// Server::State: the parts of a Server, and the functions that make them. Only the files of Server
// use it: server.cc, server_port.cc, server_task.cc and server_status.cc. A part may use those that
// are declared before it, and is destroyed before them.
//
// Thread safety: `mu` guards whether the server has been started and stopped. Create and Start make
// the parts, Stop ends them; Server orders these calls.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/base/mutex.h"
#include "core/base/rooted_env.h"
#include "core/base/scheduler.h"
#include "core/base/thread_pool.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/grpc_host.h"
#include "distributed/insight/status_server.h"
#include "distributed/rpc/graph_upload.h"
#include "distributed/rpc/health_service.h"
#include "distributed/rpc/insight_service.h"
#include "distributed/rpc/master_service.h"
#include "distributed/rpc/refused_calls.h"
#include "distributed/rpc/replica_service.h"
#include "distributed/rpc/server.h"
#include "distributed/rpc/step_calls.h"
#include "distributed/rpc/worker_service.h"
#include "distributed/security/client_port.h"
#include "distributed/security/credentials.h"
#include "distributed/task/task.h"

namespace penstock {

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
  GraphUploads uploads{*options.env};  // of clients and masters
  HealthService health_service{{"tensorflow.MasterService", "penstock.wire.Worker"}};
  RefusedCalls refused_calls;
  GrpcHost grpc_host;
  // Outlives the server, with which its service may be registered.
  std::unique_ptr<Transport> transport;
  std::unique_ptr<grpc::Server> grpc_server;
  std::unique_ptr<ClientPort> client_port;
  std::optional<CompletionLoop> loop;
  std::optional<StepCalls> calls;   // outlives the task: answers of its steps are sent by it
  std::unique_ptr<ReplicaLog> log;  // null unless the task has replicas; outlives the task
  std::optional<Task> task;
  std::optional<Replica> replica;
  std::unique_ptr<StatusServer> status;
  std::unique_ptr<Thread> stuck_watch;

  Mutex mu;
  bool started ABSL_GUARDED_BY(mu) = false;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  Status start_error ABSL_GUARDED_BY(mu);  // the result of the first Start, for later calls
  Condition stop_requested;                // notified when `stopped` has changed

  // Destroyed first, because the closures that it still runs use the other members.
  ThreadPool threads;

  // server_port.cc: the port, and what is served at it. Bind is called first; calls wait until
  // Listen.
  Status Bind();
  Status MakeTransport(grpc::ServerBuilder* builder);
  Status CheckHosts() const;
  void Listen();
  absl::flat_hash_set<std::string> Connected();

  // server_task.cc: the task. MakeTask after Bind, MakeReplica once the cluster is known.
  Status MakeTask();
  bool HasSession(const std::string& handle);
  Status MakeReplica();
  StatusOr<std::string> WitnessAddress() const;
  Replica::Options ReplicaOptions(const std::string& other, const std::string& witness);

  // server_status.cc: the status page, and the watch for steps that make no progress.
  Status ShowStatus();
  StatusOr<HostPort> StatusAddress() const;
  std::vector<std::string> StatusNames() const;
  Status Admit(const StatusServer::Visitor& visitor) const;
  wire::ClusterReport AskCluster();
  void WatchSteps();  // until the server is stopped
};

}  // namespace penstock
