// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_join.h"
#include "client/exit_deadline.h"
#include "client/stop_signal.h"
#include "core/base/log.h"
#include "core/base/log_flags.h"
#include "core/base/scheduler.h"
#include "core/op/load_library.h"
#include "distributed/calibration/calibration_file.h"
#include "distributed/doctor/examine_cluster.h"
#include "distributed/doctor/examine_host.h"
#include "distributed/rpc/detection.h"
#include "distributed/security/security_flags.h"
#include "distributed/rpc/server.h"
#include "distributed/transport/verbs/flags.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/load_flag.h"

namespace penstock {
namespace {

StatusOr<TaskConfig> FindTask(const CLI::App& app, const ClusterFlags& flags) {
  const char* tf_config = std::getenv("TF_CONFIG");
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

// Adds the flags for detecting lost tasks. Server::Create checks the values
// (distributed/rpc/detection.h).
void AddDetectionFlags(CLI::App* app, ServerOptions* options) {
  app->add_option("--heartbeat_ms", options->heartbeat_ms,
                  "How often this task, as a master, asks the tasks of its sessions whether they "
                  "live; 50 to 20000")
      ->capture_default_str();
  app->add_option("--heartbeats_missed_max", options->heartbeats_missed_max,
                  "After so many heartbeats in a row without an answer a task is lost: its steps "
                  "end with an error that names it; 2 to 100")
      ->capture_default_str();
  app->add_option("--keepalive_ms", options->keepalive_ms,
                  "Probe a connection on which nothing has come for so long; 50 to 600000")
      ->capture_default_str();
  app->add_option("--keepalive_timeout_ms", options->keepalive_timeout_ms,
                  "Close a connection whose probe is not answered within this time, at least "
                  "--keepalive_ms; up to 600000")
      ->capture_default_str();
}

// Tasks send each other tensors in messages of 1 MiB, so the limit must be well above that.
constexpr uint64_t kMessageBytesLeast = uint64_t{2} << 20;

// Returns at the end of standard input: when the process that started this one has ended, or has
// closed the pipe.
void ReadToTheEnd() {
  char skipped[256];
  while (read(STDIN_FILENO, skipped, sizeof(skipped)) > 0) {
  }
}

// Added to the grace period, for steps that are aborted when it is over.
constexpr int64_t kAbortSeconds = 5;
constexpr char kStdinEnded[] = "standard input ended";

struct ServeOptions {
  int64_t grace_seconds = 20;
  bool until_stdin_ends = false;
};

// Prints a line about the server to standard output, for the process that started it. Prints
// nothing if the log is JSON: then events such as `server_started` say the same, and supervisors
// read both outputs as one.
void Print(const Server& server, const std::string& text) {
  if (CurrentLogOptions().format == LogFormat::kJson) return;
  std::printf("%s %s\n", server.task().c_str(), text.c_str());
  std::fflush(stdout);
}

// How long the other tasks may take to answer LogMistakes.
constexpr int64_t kDoctorProbeMs = 3'000;

// Logs the findings of `penstock doctor` that a task can make on its own. Takes up to
// kDoctorProbeMs.
void LogMistakes(const TaskConfig& config, const std::string& self) {
  const auto variable = [](const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return std::string(value == nullptr ? "" : value);
  };
  Findings findings = ExamineVariables(config, variable);
  std::vector<ProbedTask> tasks = TasksOf(config.cluster);
  std::vector<std::string> addresses;
  for (const ProbedTask& task : tasks) addresses.push_back(task.address);
  std::vector<TaskProbe> probes = ProbeTasks(addresses, kDoctorProbeMs);
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i].probe = std::move(probes[i]);
  for (Finding& finding : ExamineClusterAtStart(config, std::move(tasks))) {
    findings.push_back(std::move(finding));
  }
  for (const Finding& finding : findings) {
    const bool error = finding.level == Finding::Level::kError;
    Log({.level = error ? LogLevel::kError : LogLevel::kWarning,
         .task = self,
         .event = "doctor",
         .text = StrCat(finding.subject, ": ", finding.what,
                        finding.advice.empty() ? "" : StrCat("; ", finding.advice))});
  }
}

void End(Server& server, int64_t grace_seconds) {
  const std::string reason = server.shutdown_reason();
  Print(server, StrCat("ends: ", reason));
  if (reason == kStdinEnded) grace_seconds = 0;  // the client has ended already
  if (grace_seconds > 0 && server.in_use()) {
    Print(server, StrCat("waits for up to ", grace_seconds, " s for sessions that use it"));
  }
  server.Drain(grace_seconds * 1000);
  server.Stop();
}

Status Serve(const ServerOptions& options, const ServeOptions& serve) {
  // In effect until the server has been destroyed.
  std::optional<client::ExitDeadline> exit_deadline;
  // A shared pointer, because the thread that reads standard input cannot be woken, and may outlive
  // this function.
  ASSIGN_OR_RETURN(const std::shared_ptr<Server> server, Server::Create(options));
  for (const std::string& warning : server->warnings()) {
    Log({.level = LogLevel::kWarning, .event = "security", .text = warning});
  }
  RETURN_IF_ERROR(server->Start());
  client::StopSignal stop(/*grace_seconds=*/0);
  Cancellation::Token token;
  if (!stop.cancellation().Register(
          [&](const Status&) { server->RequestShutdown("a signal asked it to"); }, &token)) {
    return OkStatus();  // the signal came before the server could start
  }
  if (serve.until_stdin_ends) {
    std::thread([weak = std::weak_ptr<Server>(server)] {
      ReadToTheEnd();
      if (const auto running = weak.lock()) running->RequestShutdown(kStdinEnded);
    }).detach();
  }
  Print(*server, StrCat("serves at ", server->target()));
  for (const OpLibrary& library : LoadedLibraries()) {
    const bool declares = !library.ops.empty();
    Print(*server,
          StrCat("has loaded '", library.path, "', with ", declares ? "the ops " : "kernels of ",
                 absl::StrJoin(declares ? library.ops : library.kernels, ", ")));
  }
  if (server->target() != StrCat("grpc://", server->listens_at())) {
    Print(*server, StrCat("listens at ", server->listens_at()));
  }
  if (!server->insecure_client_address().empty()) {
    Print(*server, StrCat("serves clients of this user without TLS at grpc://",
                          server->insecure_client_address()));
  }
  if (!server->status_url().empty()) {
    Print(*server, StrCat("shows its state at ", server->status_url()));
  }
  Print(*server, StrCat("may hold ", Server::memory_limit() >> 20, " MiB of tensors"));
  Print(*server, DescribeDetection(options));
  // Looks for mistakes on a separate thread, so that the task serves meanwhile.
  auto mistakes = Scheduler::Real().StartThread(
      "doctor", [config = options.task, self = server->task()] { LogMistakes(config, self); });
  server->Join();
  mistakes = nullptr;  // ends this thread before the log says that the task has ended
  stop.cancellation().Deregister(token);
  exit_deadline.emplace(serve.grace_seconds + kAbortSeconds, [weak = std::weak_ptr(server)] {
    const auto running = weak.lock();
    return running == nullptr ? std::string() : running->DescribeRunning();
  });
  End(*server, serve.grace_seconds);
  return OkStatus();
}

}  // namespace

void AddServerCommand(CLI::App& app, int* exit_code) {
  CLI::App* server = app.add_subcommand("server", "Serve as one task of a cluster");
  server->footer(
      "The task waits for work until SIGTERM or Ctrl-C. The cluster may also be given as JSON in\n"
      "TF_CONFIG. A client reaches it, and through it the whole cluster, at grpc://host:port.\n\n"
      "It listens at the address that the cluster gives this task; on all interfaces, if that is\n"
      "not this host's: a name that resolves later, or the address of a gateway. Without TLS and\n"
      "tokens, whoever reaches the port can run graphs, which read and write files. SECURITY.md\n"
      "tells how to make certificates, and what is trusted. For a secured task:\n\n"
      "  penstock server ... --tls_ca=ca.pem --tls_cert=task.pem --tls_key=task.key \\\n"
      "      --tls_client_auth --token_file=token --file_root=/data\n\n"
      "Without:\n\n"
      "  penstock server --job_name=ps --task_index=0 \\\n"
      "      --ps_hosts=127.0.0.1:2220 --worker_hosts=127.0.0.1:2221,127.0.0.1:2222\n");
  auto flags = std::make_shared<ClusterFlags>();
  server->add_option("--job_name", flags->job_name, "What this task is: ps or worker");
  server->add_option("--task_index", flags->task_index, "Which one of them, from 0");
  server->add_option("--ps_hosts", flags->ps_hosts, "host:port,... of the parameter servers");
  server->add_option("--worker_hosts", flags->worker_hosts, "host:port,... of the workers");
  server->add_option(
      "--ps_replica_hosts", flags->ps_replica_hosts,
      "host:port,... of a second process for each parameter server, the same in all "
      "tasks: it follows the first one, and takes over when that dies, with all that "
      "was acknowledged");
  server
      ->add_option(
          "--replica_index", flags->replica_index,
          "Of a ps with --ps_replica_hosts: 0, the process at --ps_hosts, or 1, the one at "
          "--ps_replica_hosts")
      ->capture_default_str();
  server->add_option("--listen_address", flags->listen_address,
                     "host or host:port to listen at; by default the task's address in the cluster "
                     "if it is this host's, else all interfaces");
  server
      ->add_option(
          "--protocol", flags->protocol,
          "How tensors move between tasks, the same in all of them: auto (shared memory where "
          "two tasks can have it, else gRPC), shm, grpc, or verbs (RDMA, experimental)")
      ->capture_default_str();
  AddVerbsFlags(*server);
  server
      ->add_option("--status_port", flags->status_port,
                   "Show a status page of the cluster, and /metrics for Prometheus, at this port, "
                   "where the task listens; on 127.0.0.1, for this user or with the token, if it "
                   "is secured; 0: nowhere")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  auto options = std::make_shared<ServerOptions>();
  server
      ->add_option("--status_hosts", options->status_hosts,
                   "NAME,...: other names by which browsers and Prometheus may ask for the status "
                   "page: those of a proxy or a Service in front of it. Addresses in numbers, "
                   "localhost, this machine's name and the task's host in the cluster always may")
      ->delimiter(',');
  auto config = std::make_shared<std::string>();
  server->add_option("--default_session_config", *config,
                     "A ConfigProto in text form, which clients' configurations are merged into "
                     "(docs/session_options.md)");
  auto idle_timeout = std::make_shared<int64_t>(3600);
  server
      ->add_option("--session_idle_timeout", *idle_timeout,
                   "Close a session when its client has had no connection for so many seconds; "
                   "0: never")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000'000}));
  auto stuck_after = std::make_shared<int64_t>(60);
  server
      ->add_option(
          "--stuck_after_seconds", *stuck_after,
          "Say on standard error which steps of this task's sessions have made no progress "
          "for so long, and why, as `penstock why` does; again at twice the age. 0: never")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000'000}));
  AddDetectionFlags(server, options.get());
  AddBytes(server, "--memory_limit", &options->memory_limit,
           "How many bytes of tensors the task may hold, such as 512m or 8g: what needs more fails "
           "with RESOURCE_EXHAUSTED. By default what the machine or the control group has, less "
           "an eighth");
  AddBytes(server, "--session_memory_limit", &options->session_memory_limit,
           "How many bytes the tensors of one session may take here; by default no limit of its "
           "own");
  AddBytes(server, "--step_memory_limit", &options->step_memory_limit,
           "How many bytes the tensors of one step may take here; by default no limit of its own");
  options->calibration_file = DefaultCalibrationFile();
  server
      ->add_option_function<std::string>(
          "--calibration_file",
          [options](const std::string& path) { options->calibration_file = path; },
          "Where the rates of this machine are kept, from which steps are predicted and placed. A "
          "task that does not find them there measures them at its start, for 0.2 s. \"\": each "
          "start measures")
      ->default_str(*options->calibration_file);
  AddTaskSecurityFlags(*server);
  server->add_option("--insecure_client_address", options->insecure_client_address,
                     "localhost:PORT: also listen there, without TLS and tokens, for processes of "
                     "this user: clients that know neither, such as TensorFlow's");
  AddLimit(server, "--max_sessions_per_client", &options->max_sessions_per_client,
           "How many sessions a client, by its certificate or host, may have here; 0: no limit");
  AddLimit(server, "--max_steps_in_flight", &options->max_steps_in_flight,
           "How many steps of one session may run at a time; 0: no limit");
  server
      ->add_option_function<uint64_t>(
          "--max_message_bytes",
          [options](const uint64_t& value) {
            options->max_message_bytes = static_cast<int>(value);
          },
          "How long a request to this task may be, such as 64m: graphs and feeds of clients, and "
          "what other tasks ask for. Answers to this task's own calls, such as tensors that it "
          "gets over gRPC, are not meant. By default no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(kMessageBytesLeast, uint64_t{0x7fffffff}))
      ->type_name("BYTES");
  auto serve = std::make_shared<ServeOptions>();
  server
      ->add_option("--grace_seconds", serve->grace_seconds,
                   "When told to end, wait for so long for clients that use the task: those that "
                   "are told, too, finish their step and save. A second signal ends it at once")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}));
  server->add_flag("--until_stdin_ends", serve->until_stdin_ends,
                   "Also end when standard input does: with the process that started this one");
  AddLoadFlag(*server);
  AddLogFlags(*server);
  server->callback([server, flags, config, idle_timeout, stuck_after, options, serve, exit_code] {
    StatusOr<TaskConfig> task = FindTask(*server, *flags);
    Status served = task.status();
    if (task.ok()) {
      options->task = *std::move(task);
      options->session_idle_timeout_ms = *idle_timeout * 1000;
      options->stuck_after_ms = *stuck_after * 1000;
      options->default_session_config = *config;
      served = Serve(*options, *serve);
    }
    *exit_code = ExitCodeOf(served);
    // Wrong flags, and an address that cannot be bound, are mistakes in the command line.
    if (served.code() == StatusCode::kInvalidArgument) *exit_code = 2;
  });
}

}  // namespace penstock
