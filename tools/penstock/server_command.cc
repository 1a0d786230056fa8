// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/str_join.h"
#include "client/exit_deadline.h"
#include "client/stop_signal.h"
#include "core/base/detached_thread.h"
#include "core/base/log.h"
#include "core/base/log_flags.h"
#include "core/base/scheduler.h"
#include "core/op/load_library.h"
#include "distributed/doctor/examine_cluster.h"
#include "distributed/doctor/examine_host.h"
#include "distributed/rpc/detection.h"
#include "distributed/rpc/server.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/load_flag.h"
#include "tools/penstock/server_flags.h"

namespace penstock {
namespace {

// Reads and drops standard input. Returns at its end, when the process that started this one has
// ended or has closed the pipe.
void ReadToTheEnd() {
  char skipped[256];
  while (read(STDIN_FILENO, skipped, sizeof(skipped)) > 0) {
  }
}

// Added to the grace period: the time in which the steps that are aborted after the grace period
// must end.
constexpr int64_t kAbortSeconds = 5;
constexpr char kStdinEnded[] = "standard input ended";

constexpr char kFooter[] =
    "The task waits for work until SIGTERM or Ctrl-C. The cluster may also be given as JSON in\n"
    "TF_CONFIG. A client reaches it, and through it the whole cluster, at grpc://host:port.\n\n"
    "The task listens at its address in the cluster. If this is not an address of this host (a\n"
    "name that resolves later, or the address of a gateway), it listens on all interfaces.\n"
    "Without TLS and tokens, anyone who reaches the port can run graphs, which read and write\n"
    "files. SECURITY.md says how to make certificates, and what is trusted. A secured task:\n\n"
    "  penstock server ... --tls_ca=ca.pem --tls_cert=task.pem --tls_key=task.key \\\n"
    "      --tls_client_auth --token_file=token --file_root=/data\n\n"
    "A task that is not secured:\n\n"
    "  penstock server --job_name=ps --task_index=0 \\\n"
    "      --ps_hosts=127.0.0.1:2220 --worker_hosts=127.0.0.1:2221,127.0.0.1:2222\n";

struct ServeOptions {
  int64_t grace_seconds = 20;
  bool until_stdin_ends = false;
};

// Prints a line about the server to standard output, for the process that started it. Prints
// nothing if the log is JSON: then events such as `server_started` contain the same text, and a
// supervisor that reads both outputs together gets only JSON.
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
  for (Finding& finding : ExamineFileLimit(config.cluster, FileLimit())) {
    findings.push_back(std::move(finding));
  }
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

// Prints the addresses of the server, the op libraries that it has loaded, and the settings that it
// has determined itself.
void Announce(const Server& server, const ServerOptions& options) {
  Print(server, StrCat("serves at ", server.target()));
  for (const OpLibrary& library : LoadedLibraries()) {
    const bool declares = !library.ops.empty();
    Print(server,
          StrCat("has loaded '", library.path, "', with ", declares ? "the ops " : "kernels of ",
                 absl::StrJoin(declares ? library.ops : library.kernels, ", ")));
  }
  if (server.target() != StrCat("grpc://", server.listens_at())) {
    Print(server, StrCat("listens at ", server.listens_at()));
  }
  if (!server.insecure_client_address().empty()) {
    Print(server, StrCat("serves clients of this user without TLS at grpc://",
                         server.insecure_client_address()));
  }
  if (!server.status_url().empty()) {
    Print(server, StrCat("shows its state at ", server.status_url()));
  }
  Print(server, StrCat("may hold ", Server::memory_limit() >> 20, " MiB of tensors"));
  Print(server, DescribeDetection(options));
}

Status Serve(const ServerOptions& options, const ServeOptions& serve) {
  // Declared before the server, so that the time limit applies until the server has been destroyed.
  std::optional<client::ExitDeadline> exit_deadline;
  // A shared pointer, because the thread that reads standard input cannot be woken up and may
  // outlive this function.
  ASSIGN_OR_RETURN(const std::shared_ptr<Server> server, Server::Create(options));
  for (const std::string& warning : server->warnings()) {
    Log({.level = LogLevel::kWarning, .event = "security", .text = warning});
  }
  RETURN_IF_ERROR(server->Start());
  client::StopSignal stop(/*grace_seconds=*/0);
  Cancellation::Token token;
  if (!stop.cancellation().Register(
          [&](const Status&) { server->RequestShutdown("a signal asked it to"); }, &token)) {
    return OkStatus();  // a signal has already asked the task to end
  }
  if (serve.until_stdin_ends) {
    RETURN_IF_ERROR(StartDetachedThread("stdin", [weak = std::weak_ptr<Server>(server)] {
      ReadToTheEnd();
      if (const auto running = weak.lock()) running->RequestShutdown(kStdinEnded);
    }));
  }
  Announce(*server, options);
  // Looks for mistakes on a separate thread, so that the task serves meanwhile.
  auto mistakes = Scheduler::Real().StartThread(
      "doctor", [config = options.task, self = server->task()] { LogMistakes(config, self); });
  server->Join();
  mistakes = nullptr;  // waits for the thread, so that it logs nothing after the task's end
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
  server->footer(kFooter);
  auto flags = std::make_shared<ServerFlags>();
  flags->AddTo(server);
  auto serve = std::make_shared<ServeOptions>();
  server
      ->add_option("--grace_seconds", serve->grace_seconds,
                   "When asked to end, wait up to this many seconds for the clients that use the "
                   "task: if they are asked to end, too, they finish their step and save. A second "
                   "signal ends the task at once")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}));
  server->add_flag("--until_stdin_ends", serve->until_stdin_ends,
                   "Also end at the end of standard input: when the starting process ends");
  AddLoadFlag(*server);
  AddLogFlags(*server);
  server->callback([server, flags, serve, exit_code] {
    const StatusOr<ServerOptions> options = flags->Options(*server, std::getenv("TF_CONFIG"));
    const Status served = options.ok() ? Serve(*options, *serve) : options.status();
    *exit_code = ExitCodeOf(served);
    // Wrong flags, and an address that cannot be bound, are mistakes in the command line.
    if (served.code() == StatusCode::kInvalidArgument) *exit_code = 2;
  });
}

}  // namespace penstock
