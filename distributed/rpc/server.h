// SPDX-License-Identifier: Apache-2.0
//
// Server: one task of a cluster: its worker, and the master of the clients that address it.
//
//   auto server = Server::Create({.task = config});  // listens; what is wrong is one line
//   (*server)->Start();                              // serves
//   (*server)->Join();                               // until somebody asks for the end
//
// Thread-safe. Destruction stops it. Must outlive nothing: steps of other masters are aborted with
// Unavailable, sessions of its own clients are closed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

class Registry;

struct ServerOptions {
  TaskConfig task;
  // How many devices of each kind to offer, at most.
  int gpus_max = 64;
  // Of the pool that runs kernels; 0: one per core.
  int num_threads = 0;
  // Finding lost tasks: heartbeats, and probes of idle connections.
  int64_t heartbeat_ms = 2'000;
  int heartbeats_missed_max = 3;
  int64_t keepalive_ms = 2'000;
  int64_t keepalive_timeout_ms = 4'000;
  // How long a new session waits for the tasks it needs.
  int64_t create_session_timeout_ms = 60'000;
  // A session that its client has not used for so long is closed. 0: never.
  int64_t session_idle_timeout_ms = 0;
  // A ConfigProto in text form: what a client leaves out of its own. Fields that are not known are
  // ignored, as in what clients send.
  std::string default_session_config = {};
  // Sessions that clients in this process have with this task do not go over the network.
  bool direct_sessions = true;
  Env* env = &Env::Real();
  DeadlineTimer* timer = &DeadlineTimer::Real();
};

class Server {
 public:
  // Binds the address that the cluster gives this task (port 0: a free one) and listens; callers
  // wait until Start. InvalidArgument where the address is taken or is not this host's.
  static StatusOr<std::unique_ptr<Server>> Create(const ServerOptions& options);
  ~Server();

  // "host:port", with the port that was bound; "grpc://host:port".
  const std::string& address() const;
  std::string target() const;
  // "/job:ps/replica:0/task:0", and the number that tells this life of it from others.
  std::string task() const;
  uint64_t incarnation() const;

  // The cluster, where its addresses were not known when the server was created. Before Start. It
  // must name this task, at address().
  Status SetCluster(const ClusterSpec& cluster);
  Status Start();

  // Returns when RequestShutdown or Stop is called, here or by a Shutdown call of another process.
  void Join();
  void RequestShutdown(const std::string& reason);
  std::string shutdown_reason() const;
  // Ends what runs and closes the port. Takes a few seconds at most.
  void Stop();

  // What is there now: all zero in a server that nobody uses.
  struct Counts {
    int64_t running_steps = 0;
    int64_t parked_subscriptions = 0;
  };
  Counts counts() const;

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Calls the task at "host:port" and has its process end. For tools.
Status ShutdownTask(const std::string& address, const std::string& reason, int64_t timeout_ms,
                    Env& env = Env::Real());

}  // namespace penstock
