// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/server_flags.h"

#include <CLI/CLI.hpp>

#include "distributed/calibration/calibration_file.h"
#include "distributed/security/security_flags.h"
#include "distributed/transport/verbs/flags.h"

namespace penstock {
namespace {

// Tasks send each other tensors in messages of 1 MiB, so the limit must be well above that.
constexpr uint64_t kMessageBytesLeast = uint64_t{2} << 20;

// Adds a flag for a number of bytes above 0, with a unit.
void AddBytes(CLI::App* app, const char* name, int64_t* bytes, const char* description) {
  app->add_option_function<uint64_t>(
         name, [bytes](const uint64_t& value) { *bytes = static_cast<int64_t>(value); },
         description)
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62))
      ->type_name("BYTES");
}

void AddLimit(CLI::App* app, const char* name, int* limit, const char* description) {
  app->add_option(name, *limit, description)
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
}

void AddClusterFlags(CLI::App* app, ServerFlags* flags) {
  app->add_option("--job_name", flags->task.job_name, "The task's job: ps or worker");
  app->add_option("--task_index", flags->task.task_index, "The task's index in its job, from 0");
  app->add_option("--ps_hosts", flags->task.ps_hosts, "host:port,... of the parameter servers");
  app->add_option("--worker_hosts", flags->task.worker_hosts, "host:port,... of the workers");
  app->add_option("--ps_replica_hosts", flags->task.ps_replica_hosts,
                  "host:port,... of a second process for each parameter server; the same list for "
                  "all tasks. This follower takes over when the primary dies, with the updates of "
                  "all answered steps");
  app->add_option("--replica_index", flags->task.replica_index,
                  "For a ps with --ps_replica_hosts: 0 for the process at --ps_hosts, 1 for the "
                  "one at --ps_replica_hosts")
      ->capture_default_str();
}

// Adds the flags for where the task is reached: by other tasks, and by browsers.
void AddAddressFlags(CLI::App* app, ServerFlags* flags) {
  app->add_option("--listen_address", flags->task.listen_address,
                  "host or host:port to listen at; by default the task's address in the cluster "
                  "if it is an address of this host, else all interfaces");
  app->add_option(
         "--protocol", flags->task.protocol,
         "How tensors move between tasks; the same for all tasks: auto (shared memory between "
         "tasks of one host, else gRPC), shm, grpc, or verbs (RDMA, experimental)")
      ->capture_default_str();
  AddVerbsFlags(*app);
  app->add_option("--status_port", flags->task.status_port,
                  "Serve a status page of the cluster, and /metrics for Prometheus, at this port, "
                  "on the host on which the task listens. A secured task serves them on 127.0.0.1 "
                  "only, for this user or with the token. 0: no page")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  app->add_option("--status_hosts", flags->options.status_hosts,
                  "NAME,...: further host names under which browsers and Prometheus may request "
                  "the status page, such as those of a proxy or a Service. Numeric addresses, "
                  "localhost, this machine's name and the task's host in the cluster are always "
                  "accepted")
      ->delimiter(',');
}

void AddSessionFlags(CLI::App* app, ServerFlags* flags) {
  app->add_option("--default_session_config", flags->options.default_session_config,
                  "A ConfigProto in text form, into which the server merges each client's "
                  "ConfigProto (docs/session_options.md)");
  app->add_option("--session_idle_timeout", flags->session_idle_timeout_s,
                  "Close a session when its client has had no connection for this many seconds, "
                  "and end a partial run that was not used for as long; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000'000}));
  app->add_option(
         "--stuck_after_seconds", flags->stuck_after_s,
         "Log the steps of this task's sessions that have made no progress for this many seconds, "
         "and why, as `penstock why` does; again at twice the age. 0: never")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000'000}));
}

// Adds the flags for detecting lost tasks. Server::Create checks the values
// (distributed/rpc/detection.h).
void AddDetectionFlags(CLI::App* app, ServerOptions* options) {
  app->add_option("--heartbeat_ms", options->heartbeat_ms,
                  "The interval at which this task, as a master, sends heartbeats to the tasks of "
                  "its sessions; 50 to 20000")
      ->capture_default_str();
  app->add_option("--heartbeats_missed_max", options->heartbeats_missed_max,
                  "A task that has not answered this many heartbeats in a row is lost: the steps "
                  "that use it end with an error that names it; 2 to 100")
      ->capture_default_str();
  app->add_option("--keepalive_ms", options->keepalive_ms,
                  "Probe a connection on which no data have arrived for this long; 50 to 600000")
      ->capture_default_str();
  app->add_option("--keepalive_timeout_ms", options->keepalive_timeout_ms,
                  "Close a connection whose probe is not answered within this time, at least "
                  "--keepalive_ms; up to 600000")
      ->capture_default_str();
}

void AddMemoryFlags(CLI::App* app, ServerFlags* flags) {
  AddBytes(app, "--memory_limit", &flags->options.memory_limit,
           "The maximum bytes of tensors in the task's memory, such as 512m or 8g; an op that "
           "needs more fails with RESOURCE_EXHAUSTED. By default seven eighths of the memory of "
           "the machine or the control group");
  AddBytes(app, "--session_memory_limit", &flags->options.session_memory_limit,
           "The maximum bytes of the tensors of one session on this task; by default no limit per "
           "session");
  AddBytes(app, "--step_memory_limit", &flags->options.step_memory_limit,
           "The maximum bytes of the tensors of one step on this task; by default no limit per "
           "step");
}

void AddCalibrationFlag(CLI::App* app, ServerFlags* flags) {
  flags->options.calibration_file = DefaultCalibrationFile();
  app->add_option_function<std::string>(
         "--calibration_file",
         [flags](const std::string& path) { flags->options.calibration_file = path; },
         "The file with the measured rates of this machine's CPU, which predictions and placement "
         "use. If there is no usable file, the task measures the rates when it starts, for 0.2 s, "
         "and writes the file. \"\": measure at each start")
      ->default_str(*flags->options.calibration_file);
}

// Adds the flags that limit clients.
void AddClientFlags(CLI::App* app, ServerFlags* flags) {
  app->add_option("--insecure_client_address", flags->options.insecure_client_address,
                  "localhost:PORT: also listen there without TLS and tokens, for processes of this "
                  "user whose clients support neither, such as TensorFlow's");
  AddLimit(app, "--max_sessions_per_client", &flags->options.max_sessions_per_client,
           "The maximum number of sessions of one client (identified by its certificate or host) "
           "with this task; 0: no limit");
  AddLimit(app, "--max_steps_in_flight", &flags->options.max_steps_in_flight,
           "The maximum number of concurrent steps of one session; 0: no limit");
  app->add_option_function<uint64_t>(
         "--max_message_bytes",
         [flags](const uint64_t& value) {
           flags->options.max_message_bytes = static_cast<int>(value);
         },
         "The maximum size of a request to this task, such as 64m: graphs and feeds of clients, "
         "and requests of other tasks. Does not apply to the responses to this task's own calls, "
         "such as tensors that it receives over gRPC. By default no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(kMessageBytesLeast, uint64_t{0x7fffffff}))
      ->type_name("BYTES");
}

StatusOr<TaskConfig> FindTask(const CLI::App& app, const ClusterFlags& flags,
                              const char* tf_config) {
  for (const char* flag : {"--job_name", "--task_index", "--ps_hosts", "--worker_hosts"}) {
    if (app.count(flag) > 0) return TaskConfigFromFlags(flags);
  }
  if (tf_config != nullptr && *tf_config != '\0') {
    ASSIGN_OR_RETURN(TaskConfig task, TaskConfigFromJson(tf_config));
    task.listen_address = flags.listen_address;
    task.status_port = flags.status_port;
    if (app.count("--protocol") > 0) task.protocol = flags.protocol;
    RETURN_IF_ERROR(AddReplicas(flags, &task));
    return task;
  }
  return InvalidArgument("--job_name: say which task this is, with --task_index, --ps_hosts and ",
                         "--worker_hosts, or in TF_CONFIG");
}

}  // namespace

void ServerFlags::AddTo(CLI::App* app) {
  AddClusterFlags(app, this);
  AddAddressFlags(app, this);
  AddSessionFlags(app, this);
  AddDetectionFlags(app, &options);
  AddMemoryFlags(app, this);
  AddCalibrationFlag(app, this);
  AddTaskSecurityFlags(*app);
  AddClientFlags(app, this);
}

StatusOr<ServerOptions> ServerFlags::Options(const CLI::App& app, const char* tf_config) const {
  ServerOptions result = options;
  ASSIGN_OR_RETURN(result.task, FindTask(app, task, tf_config));
  result.session_idle_timeout_ms = session_idle_timeout_s * 1000;
  result.stuck_after_ms = stuck_after_s * 1000;
  return result;
}

}  // namespace penstock
