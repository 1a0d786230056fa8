// SPDX-License-Identifier: Apache-2.0
#include "client/examples/task.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "client/examples/serving_workers.h"
#include "client/exit_deadline.h"
#include "client/stop_signal.h"
#include "core/base/check.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/log_flags.h"
#include "core/base/scheduler.h"
#include "distributed/calibration/calibration_file.h"
#include "distributed/rpc/server.h"
#include "distributed/security/security_flags.h"
#include "distributed/transport/verbs/flags.h"

namespace penstock::examples {
namespace {

// kGraceMs: how long an ending task waits for other tasks' sessions that use it. kEndSeconds: how
// long the shutdown may take, including this wait: less than the 30 s after which Kubernetes kills
// the process.
constexpr int64_t kGraceMs = 20'000;
constexpr double kEndSeconds = 25;

int CodeOf(const Status& status) {
  if (absl::IsCancelled(status)) return kStopped;
  const bool task_lost =
      absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
  return task_lost ? kTaskLost : kError;
}

// Serves until another task or a signal asks the process to end.
void Serve(Server& server) {
  client::StopSignal stop(/*grace_seconds=*/0);
  Cancellation::Token token;
  const auto end = [&](const Status&) { server.RequestShutdown("a signal asked it to"); };
  if (!stop.cancellation().Register(end, &token))
    return;  // the end was requested before this object was made
  server.Join();
  stop.cancellation().Deregister(token);
}

// While an object of this class exists, a request to end the server (`penstock shutdown`) ends the
// process like SIGTERM: the training loop finishes its step and saves. The destructor requests the
// end of the server, because training has ended.
class EndWithServer {
 public:
  explicit EndWithServer(Server& server)
      : server_(server),
        watcher_(Scheduler::Real().StartThread("server watcher", [this] { Watch(); })) {}
  ~EndWithServer() {
    ended_ = true;
    server_.RequestShutdown("training has ended");
    watcher_ = nullptr;  // waits until the thread has ended
  }
  EndWithServer(const EndWithServer&) = delete;
  EndWithServer& operator=(const EndWithServer&) = delete;

 private:
  void Watch() {
    server_.Join();
    if (ended_) return;
    Log({.task = server_.task(),
         .event = "told_to_end",
         .text = StrCat("ends: ", server_.shutdown_reason())});
    raise(SIGTERM);
  }

  Server& server_;
  std::atomic<bool> ended_{false};
  std::unique_ptr<Thread> watcher_;
};

// Shuts down the workers that only serve while the chief trains.
void ShutdownServingWorkers(const TaskRole& role) {
  std::set<std::string> addresses;
  for (const auto& [job, tasks] : role.task.cluster.jobs()) {
    if (job == "ps") continue;
    for (const auto& [index, address] : tasks) {
      if (job != role.task.job || index != role.task.task) addresses.insert(address);
    }
  }
  for (const auto& [address, status] : ShutdownTasks(addresses)) Report(role.program, status, 0);
}

Status RunRole(const TaskRole& role, Server& server,
               const std::function<Status(const std::string& target)>& train) {
  RETURN_IF_ERROR(server.Start());
  if (role.task.job == "ps" || (role.chief_drives && !role.task.is_chief())) {
    Serve(server);
    return OkStatus();
  }
  const EndWithServer end_with_server(server);
  RETURN_IF_ERROR(train(server.target()));
  if (role.chief_drives) ShutdownServingWorkers(role);
  return OkStatus();
}

Status ServeOrTrain(const TaskRole& role, std::shared_ptr<Server> server,
                    const std::function<Status(const std::string& target)>& train) {
  const Status status = RunRole(role, *server, train);
  // Describes the running nodes until the server is destroyed.
  const auto describe = [weak = std::weak_ptr(server)] {
    const auto running = weak.lock();
    return running == nullptr ? std::string() : running->DescribeRunning();
  };
  const client::ExitDeadline exit_deadline(kEndSeconds, describe);
  server->Drain(kGraceMs);
  server = nullptr;
  return status;
}

Status CheckJob(const TaskConfig& task) {
  if (task.cluster.empty()) return OkStatus();
  for (const char* job : {"ps", "worker", "chief", "master"}) {
    if (task.job == job) return OkStatus();
  }
  return InvalidArgument("job '", task.job, "' has nothing to do here: expected ps, worker, ",
                         "chief or master");
}

}  // namespace

int Report(const std::string& program, const Status& status, int code) {
  if (status.ok()) return kDone;
  const std::string message(status.message());
  if (CurrentLogOptions().format == LogFormat::kJson) {
    Log({.level = LogLevel::kError, .event = "failed", .text = message});
  } else {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), message.c_str());
  }
  return code;
}

int RunTask(const TaskRole& role, const std::function<Status(const std::string& target)>& train) {
  Status status;
  SetLogTask(TaskName(role.task));
  if (!role.server.empty() && role.task.status_port != 0) {
    const Status mistake = InvalidArgument("--status_port: with --server=", role.server,
                                           " another process listens; give it the flag instead");
    return Report(role.program, mistake, kMistake);
  }
  if (!role.server.empty() && !role.task.listen_address.empty()) {
    const Status mistake = InvalidArgument("--listen_address: with --server=", role.server,
                                           " another process listens; give it the flag instead");
    return Report(role.program, mistake, kMistake);
  }
  if (role.task.cluster.empty() || !role.server.empty()) {
    status = train(role.server);
  } else {
    auto server = Server::Create({.task = role.task, .calibration_file = DefaultCalibrationFile()});
    if (!server.ok()) return Report(role.program, server.status(), kMistake);
    for (const std::string& warning : (*server)->warnings()) {
      Log({.level = LogLevel::kWarning, .event = "security", .text = warning});
    }
    status = ServeOrTrain(role, *std::move(server), train);
  }
  return Report(role.program, status, CodeOf(status));
}

void AddClusterFlags(CLI::App& app, ClusterFlags* flags) {
  app.add_option("--job_name", flags->job_name, "the task's job: ps or worker");
  app.add_option("--task_index", flags->task_index, "the task's index in its job, from 0");
  app.add_option("--ps_hosts", flags->ps_hosts, "host:port,... of the parameter servers");
  app.add_option("--worker_hosts", flags->worker_hosts, "host:port,... of the workers");
  app.add_option("--ps_replica_hosts", flags->ps_replica_hosts,
                 "host:port,... of a second process for each ps, a follower that takes over when "
                 "the primary dies; the same list for all tasks");
  app.add_option("--replica_index", flags->replica_index,
                 "for a ps with --ps_replica_hosts: 0 at --ps_hosts, 1 at --ps_replica_hosts")
      ->capture_default_str();
  app.add_option("--listen_address", flags->listen_address,
                 "host or host:port to listen at; by default the task's address in the cluster if "
                 "it is this host's, else all interfaces");
  app.add_option("--protocol", flags->protocol,
                 "how tensors move between tasks; the same for all tasks: auto (shared memory "
                 "between tasks of one host, else gRPC), shm, grpc, or verbs (RDMA, experimental)")
      ->capture_default_str();
  AddVerbsFlags(app);
  app.add_option("--status_port", flags->status_port,
                 "serve a status page of the cluster and /metrics for Prometheus at this port; 0: "
                 "nowhere")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  AddTaskSecurityFlags(app);
  AddLogFlags(app);
}

StatusOr<TaskConfig> FindTask(const CLI::App& app, const ClusterFlags& flags) {
  const char* const tf_config = std::getenv("TF_CONFIG");
  bool given = false;
  for (const char* flag : {"--job_name", "--task_index", "--ps_hosts", "--worker_hosts"}) {
    given |= app.count(flag) > 0;
  }
  TaskConfig task;
  if (given) {
    ASSIGN_OR_RETURN(task, TaskConfigFromFlags(flags));
  } else if (tf_config != nullptr && *tf_config != '\0') {
    ASSIGN_OR_RETURN(task, TaskConfigFromJson(tf_config));
    task.listen_address = flags.listen_address;
    task.status_port = flags.status_port;
    RETURN_IF_ERROR(AddReplicas(flags, &task));
  }
  if (task.cluster.empty() && !flags.listen_address.empty()) {
    return InvalidArgument("--listen_address: a process that is no task of a cluster does not ",
                           "listen; give the cluster with --job_name, --task_index, --ps_hosts ",
                           "and --worker_hosts, or in TF_CONFIG");
  }
  if (task.cluster.empty() && flags.status_port != 0) {
    return InvalidArgument("--status_port: a process that is no task of a cluster shows nothing; ",
                           "give the cluster with --job_name, --task_index, --ps_hosts and ",
                           "--worker_hosts, or in TF_CONFIG");
  }
  if (task.cluster.empty() && app.count("--file_root") > 0) {
    return InvalidArgument(
        "--file_root: applies to tasks of a cluster; a process that is not a task uses ",
        "the files of the user that started it");
  }
  if (app.count("--protocol") > 0) task.protocol = flags.protocol;
  RETURN_IF_ERROR(CheckJob(task));
  return task;
}

std::string TaskName(const TaskConfig& task) {
  return task.cluster.empty() ? "" : StrCat("/job:", task.job, "/task:", task.task);
}

std::string ChiefName(const TaskConfig& task) {
  for (const char* job : {"chief", "master"}) {
    if (NumTasks(task, job) > 0) return StrCat("/job:", job, "/task:0");
  }
  return "/job:worker/task:0";
}

int NumTasks(const TaskConfig& task, const std::string& job) {
  const auto tasks = task.cluster.jobs().find(job);
  return tasks == task.cluster.jobs().end() ? 0 : static_cast<int>(tasks->second.size());
}

std::vector<std::string> Workers(const TaskConfig& task) {
  std::vector<std::string> workers;
  for (const auto& [job, tasks] : task.cluster.jobs()) {
    if (job == "ps") continue;
    for (const auto& [index, address] : tasks) {
      workers.push_back(StrCat("/job:", job, "/task:", index));
    }
  }
  return workers;
}

int WorkerIndex(const TaskConfig& task) {
  const std::vector<std::string> workers = Workers(task);
  const auto self = std::find(workers.begin(), workers.end(), TaskName(task));
  CHECK(self != workers.end());
  return static_cast<int>(self - workers.begin());
}

}  // namespace penstock::examples
