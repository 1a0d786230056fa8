// SPDX-License-Identifier: Apache-2.0
//
// Server: one task of a cluster, with its worker, and with the master for the clients that connect
// to it.
//
//   auto server = Server::Create({.task = config});  // listens; each error is one line
//   (*server)->Start();                              // serves
//   (*server)->Join();                               // until RequestShutdown
//   (*server)->Drain(20'000);                        // gives clients time to save and end
//
// Thread-safe. Destruction stops it: steps of other masters are aborted with Unavailable, sessions
// of its own clients are closed. Sessions in this process may outlive it; their calls then end with
// Unavailable.
//
// Create switches off Abseil's search for lock cycles (absl::SetMutexDeadlockDetectionMode) for the
// whole process, because gRPC's locks would pay for it in each call. A program that wants it can
// switch it on again afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/security/security_settings.h"

namespace penstock {

class Registry;

struct ServerOptions {
  TaskConfig task;  // its protocol must be one that TransportFactory knows
  // The maximum number of GPUs that the task offers as devices.
  int gpus_max = 64;
  // Threads of the pool that runs kernels; 0: the number in default_session_config (NumThreadsOf in
  // session_config.h), or if it has none, one per core.
  int num_threads = 0;
  // The settings that find lost tasks: heartbeats, and probes of idle connections (detection.h has
  // their ranges).
  int64_t heartbeat_ms = 2'000;
  int heartbeats_missed_max = 3;
  int64_t keepalive_ms = 2'000;
  int64_t keepalive_timeout_ms = 4'000;
  // How long a new session waits for the tasks it needs.
  int64_t create_session_timeout_ms = 60'000;
  // A session is closed if, for this long, its client has had no connection to this task and the
  // session has run no step. 0: never. Sessions of clients in this process are not closed.
  int64_t session_idle_timeout_ms = 3'600'000;
  // memory_limit: the bytes of tensors that this process may hold, with all of its servers. 0: the
  // limit that is already set, or else DefaultMemoryLimit(). session_memory_limit and
  // step_memory_limit: the bytes that each session, and each step, may hold in this task; 0: no
  // separate limit.
  int64_t memory_limit = 0;
  int64_t session_memory_limit = 0;
  int64_t step_memory_limit = 0;
  // The master writes to standard error which of its steps have made no progress for this long, and
  // why (insight/stuck_watch.h). 0: never.
  int64_t stuck_after_ms = 60'000;
  // A ConfigProto in text form, with the defaults for fields that a client leaves out of its own.
  // Unknown fields are ignored, as in the messages of clients.
  std::string default_session_config = {};
  // TLS and tokens of the task, and the files that its ops may use. Default: the settings of the
  // process.
  std::optional<SecuritySettings> security = std::nullopt;
  // Names that requests for the status page may use, in addition to the host at which the server
  // listens, its host in the cluster, this machine's name and "localhost".
  std::vector<std::string> status_hosts = {};
  // "localhost:PORT", an additional port without TLS and tokens, for processes of the same user as
  // this one: see security/client_port.h. "": none.
  std::string insecure_client_address = {};
  // Limits for clients in other processes; 0: no limit. They bound the sessions that a client
  // (rpc/client_limits.h) may have with this task, the steps that one session may run at a time,
  // and the bytes of one request to any service of this task.
  int max_sessions_per_client = 0;
  int max_steps_in_flight = 0;
  int max_message_bytes = 0;
  // The file that keeps the rates of this machine's CPU, with which placement and predictions are
  // made: distributed/calibration. If the file does not have them, Create measures them, which
  // takes about 0.2 s, and writes the file. "": Create measures the rates and writes no file. Null:
  // uses the rates that were set for the process before (core/runtime/cpu_rates.h), at first the
  // type's defaults.
  std::optional<std::string> calibration_file = std::nullopt;
  // True if clients in this process use this task's sessions directly instead of over the network.
  bool direct_sessions = true;
  // A server has real sockets and threads, so it waits by Scheduler::Real(): NowNanos() of `env`
  // must be that of Env::Real(). A simulation makes Tasks instead (distributed/sim).
  Env* env = &Env::Real();
  DeadlineTimer* timer = &DeadlineTimer::Real();
};

class Server {
 public:
  // Makes a server that listens at `task.listen_address` ("HOST[:PORT]"). The default is the task's
  // address in the cluster, or all interfaces if that is not an address of this host
  // (listen_address.h). Port 0 means any free port. Calls wait until Start. InvalidArgument if the
  // port is taken, listen_address is not an address of this host, or a file of the security
  // settings cannot be used. The server knows the ops that are registered now, and those of the
  // libraries that the environment variable PENSTOCK_LOAD names (core/op/load_library.h); returns
  // the errors of loading them.
  static StatusOr<std::unique_ptr<Server>> Create(const ServerOptions& options);
  ~Server();

  // Return the address at which peers reach this task, as "host:port" and as "grpc://host:port".
  // The address is the one in the cluster, with the bound port if the cluster says port 0.
  const std::string& address() const;
  std::string target() const;
  // Returns the "host:port" that was bound. "[::]" and "0.0.0.0" mean all interfaces.
  const std::string& listens_at() const;
  // Returns the "http://host:port/" of the status page; "" if there is none. The host is that of
  // listens_at(), or 127.0.0.1 if the task is secured.
  std::string status_url() const;
  // Returns the "localhost:port" of `insecure_client_address`, with the port that was bound; "" if
  // there is none.
  std::string insecure_client_address() const;
  // Returns warnings about weak security settings of this task, a line each
  // (Credentials::warnings).
  const std::vector<std::string>& warnings() const;
  // Return the task's name, "/job:ps/replica:0/task:0", and its incarnation (TaskId).
  std::string task() const;
  uint64_t incarnation() const;

  // Sets the cluster, for servers that were created before its addresses were known. Call it before
  // Start. The cluster must contain this task, at address().
  Status SetCluster(const ClusterSpec& cluster);
  // Starts the task, its replica and its status page, and begins to answer calls. A second call
  // does nothing and returns the error of the first.
  Status Start();

  // Returns when RequestShutdown or Stop is called, here or by a Shutdown call of another process.
  void Join();
  void RequestShutdown(const std::string& reason);
  std::string shutdown_reason() const;
  // Refuses new sessions, reports "not serving" to health checks, and waits, at most `grace_ms`,
  // until the sessions of other processes no longer use the task. So clients that are told to end
  // at the same time can finish their steps and save. Call it after RequestShutdown. See
  // Task::Drain.
  void Drain(int64_t grace_ms);
  // Returns whether Drain would wait.
  bool in_use() const;
  // Describes the nodes that keep this process from ending: "node 'read' of step 7 waits for files,
  // for 12 s". Returns "" if nothing runs.
  std::string DescribeRunning() const;
  // Ends running steps and closes the port. Takes a few seconds at most, unless a kernel does not
  // return.
  void Stop();

  // Returns how many bytes of tensors this process may hold.
  static int64_t memory_limit();

  // The numbers of objects that the server has now. All are zero in a server that no client uses.
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

// Tells the task at "host:port" to end its process. For tools.
Status ShutdownTask(const std::string& address, const std::string& reason, int64_t timeout_ms,
                    Env& env = Env::Real());

}  // namespace penstock
