// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/local_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/env.h"
#include "core/base/log.h"

namespace penstock {
namespace {

constexpr int kPollMillis = 50;
constexpr int kStoppedByUser = 130;  // the shells' exit code for a program ended by Ctrl-C

// Returns free ports. Keeps all of them bound until the last one is found, so that they are
// distinct.
StatusOr<std::vector<int>> UnusedPorts(int count) {
  std::vector<int> sockets, ports;
  Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (fd >= 0) sockets.push_back(fd);
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      status = Unavailable("no free port on the loopback interface: ", std::strerror(errno));
    }
    ports.push_back(ntohs(address.sin_port));
  }
  for (int fd : sockets) close(fd);
  if (!status.ok()) return status;
  return ports;
}

std::string Hosts(const std::vector<int>& ports, int begin, int end) {
  std::vector<std::string> hosts;
  for (int i = begin; i < end; ++i) hosts.push_back(StrCat("127.0.0.1:", ports[i]));
  return absl::StrJoin(hosts, ",");
}

bool Retryable(int wait_status) {
  return WIFSIGNALED(wait_status) || WEXITSTATUS(wait_status) >= 128;
}

std::string Describe(int wait_status) {
  if (WIFSIGNALED(wait_status)) return StrCat("was killed by signal ", WTERMSIG(wait_status));
  return StrCat("ended with code ", WEXITSTATUS(wait_status));
}

}  // namespace

LocalCluster::~LocalCluster() { Shutdown(); }

Status LocalCluster::Start() {
  const bool replicas = options_.ps_replicas > 1;
  const int num_tasks = options_.num_ps + options_.num_workers;
  const int num_processes = num_tasks + (replicas ? options_.num_ps : 0);
  ASSIGN_OR_RETURN(const std::vector<int> ports, UnusedPorts(num_processes));
  ps_hosts_ = Hosts(ports, 0, options_.num_ps);
  worker_hosts_ = Hosts(ports, options_.num_ps, num_tasks);
  ps_replica_hosts_ = Hosts(ports, num_tasks, num_processes);
  if (!options_.log_dir.empty()) {
    RETURN_IF_ERROR(Env::Real().CreateDirectories(options_.log_dir));
  }
  for (int i = 0; i < options_.num_ps; ++i) {
    tasks_.push_back({.job = "ps", .index = i, .replica = replicas ? 0 : -1});
    if (replicas) tasks_.push_back({.job = "ps", .index = i, .replica = 1});
  }
  for (int i = 0; i < options_.num_workers; ++i) tasks_.push_back({.job = "worker", .index = i});
  for (Task& task : tasks_) RETURN_IF_ERROR(Launch(task));
  return OkStatus();
}

Status LocalCluster::Launch(Task& task) {
  int ends[2] = {-1, -1};
  const bool to_files = !options_.log_dir.empty();
  const bool as_is = to_files && task.job == "worker" && task.index == 0;
  if (to_files && !as_is) {
    const std::string path =
        StrCat(options_.log_dir, "/", absl::StrReplaceAll(task.name(), {{"/", "-"}}), ".log");
    ends[1] = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (ends[1] < 0) return Unavailable("cannot write ", path, ": ", std::strerror(errno));
  } else if (!to_files && pipe2(ends, O_CLOEXEC) != 0) {
    return ResourceExhausted("no pipe for ", task.name(), ": ", std::strerror(errno));
  }
  const pid_t parent = getpid();
  task.pid = fork();
  if (task.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kStoppedByUser);  // the parent ended before prctl
    setpgid(0, 0);  // Ctrl-C must reach only the parent, which ends the tasks in order
    Exec(task, ends[1]);
  }
  if (ends[1] >= 0) close(ends[1]);
  if (task.output >= 0) close(task.output);
  task.output = ends[0];
  if (task.output >= 0) fcntl(task.output, F_SETFL, O_NONBLOCK);
  if (task.pid < 0)
    return ResourceExhausted("cannot start ", task.name(), ": ", std::strerror(errno));
  return OkStatus();
}

void LocalCluster::Exec(const Task& task, int output) {
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  std::vector<std::string> arguments = options_.command;
  // Leaves the flag out if its value is empty, because programs reject an empty value.
  if (!ps_hosts_.empty()) arguments.push_back(StrCat("--ps_hosts=", ps_hosts_));
  arguments.push_back(StrCat("--worker_hosts=", worker_hosts_));
  if (!ps_replica_hosts_.empty()) {
    arguments.push_back(StrCat("--ps_replica_hosts=", ps_replica_hosts_));
  }
  if (task.replica >= 0) arguments.push_back(StrCat("--replica_index=", task.replica));
  arguments.push_back(StrCat("--job_name=", task.job));
  arguments.push_back(StrCat("--task_index=", task.index));
  if (options_.status_port != 0 && task.job == "worker" && task.index == 0) {
    arguments.push_back(StrCat("--status_port=", options_.status_port));
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "penstock run: cannot start '%s': %s\n", argv[0], std::strerror(errno));
  _exit(127);
}

void LocalCluster::PrintLine(const std::string& task, const std::string& line) {
  if (CurrentLogOptions().format == LogFormat::kText) {
    std::printf("[%s] %s\n", task.c_str(), line.c_str());
  } else if (line.starts_with('{') && nlohmann::json::accept(line)) {
    std::printf("%s\n", line.c_str());
  } else {
    const LogLine output{.task = task, .event = "output", .text = line};
    std::printf("%s\n", JsonLogLine(output).c_str());
  }
}

void LocalCluster::PrintLines(Task& task, string_view text) {
  task.line.append(text.data(), text.size());
  size_t end;
  while ((end = task.line.find_first_of("\n\r")) != std::string::npos) {
    if (end > 0) PrintLine(task.name(), task.line.substr(0, end));
    task.line.erase(0, end + 1);
  }
  std::fflush(stdout);
}

void LocalCluster::CopyOutput(int timeout_ms) {
  std::vector<pollfd> polled;
  std::vector<Task*> tasks;
  for (Task& task : tasks_) {
    if (task.output < 0) continue;
    polled.push_back({.fd = task.output, .events = POLLIN, .revents = 0});
    tasks.push_back(&task);
  }
  poll(polled.data(), polled.size(), timeout_ms);
  char buffer[4096];
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    const ssize_t n = read(polled[i].fd, buffer, sizeof(buffer));
    if (n > 0) {
      PrintLines(*tasks[i], {buffer, static_cast<size_t>(n)});
    } else if (n == 0) {
      close(tasks[i]->output);
      tasks[i]->output = -1;
    }
  }
}

int LocalCluster::Reap(Task& task, int wait_status) {
  task.pid = -1;
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
    task.done = true;
    return 0;
  }
  if (Retryable(wait_status) && restarts_ < options_.restarts_max) {
    ++restarts_;
    Log({.level = LogLevel::kWarning,
         .event = "task_restarted",
         .text = StrCat(task.name(), " ", Describe(wait_status), "; starting it again (", restarts_,
                        " of ", options_.restarts_max, " restarts)"),
         .fields = {{"process", task.name()}}});
    const Status launched = Launch(task);
    if (launched.ok()) {
      LaunchWorkersFor(task);
      return 0;
    }
    Log({.level = LogLevel::kError, .event = "failed", .text = std::string(launched.message())});
  }
  if (GoesOnWithout(task, wait_status)) {
    task.lost = true;
    Log({.level = LogLevel::kWarning,
         .event = "task_lost",
         .text = StrCat(task.name(), " ", Describe(wait_status), "; going on without it"),
         .fields = {{"process", task.name()}}});
    return 0;
  }
  Log({.level = LogLevel::kError,
       .event = "task_failed",
       .text = StrCat(task.name(), " ", Describe(wait_status)),
       .fields = {{"process", task.name()}}});
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void LocalCluster::LaunchWorkersFor(const Task& task) {
  if (!options_.restart_ended_workers || task.job != "worker" || task.index != 0) return;
  for (Task& other : tasks_) {
    if (other.job != "worker" || !other.done) continue;
    Log({.event = "task_restarted",
         .text = StrCat(other.name(), " had ended; starting it again for ", task.name()),
         .fields = {{"process", other.name()}}});
    const Status launched = Launch(other);
    other.done = !launched.ok();
    if (launched.ok()) continue;
    Log({.level = LogLevel::kError, .event = "failed", .text = std::string(launched.message())});
  }
}

bool LocalCluster::GoesOnWithout(const Task& task, int wait_status) const {
  return options_.elastic && task.job == "worker" && Retryable(wait_status) &&
         std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& other) {
           return &other != &task && other.job == "worker" && !other.lost;
         });
}

int LocalCluster::ReapAll() {
  for (Task& task : tasks_) {
    int wait_status;
    if (task.pid < 0 || waitpid(task.pid, &wait_status, WNOHANG) != task.pid) continue;
    CopyOutput(0);
    if (const int failed = Reap(task, wait_status)) return failed;
  }
  return 0;
}

bool LocalCluster::WorkersDone() const {
  return std::all_of(tasks_.begin(), tasks_.end(),
                     [](const Task& t) { return t.job != "worker" || t.done || t.lost; });
}

int LocalCluster::Wait(const std::atomic<bool>& stop) {
  int exit_code = 0;
  while (!stop && exit_code == 0 && !WorkersDone()) {
    CopyOutput(kPollMillis);
    exit_code = ReapAll();
  }
  if (options_.keep_running && exit_code == 0 && !stop) {
    return WaitUntilStopped(stop);
  }
  Shutdown();
  return stop ? kStoppedByUser : exit_code;
}

int LocalCluster::WaitUntilStopped(const std::atomic<bool>& stop) {
  if (CurrentLogOptions().format == LogFormat::kText) {
    std::printf("The parameter servers go on serving at: %s\nCtrl-C ends them.\n",
                ps_hosts_.c_str());
    std::fflush(stdout);
  } else {
    Log({.event = "keep_running",
         .text = StrCat("the parameter servers go on serving at: ", ps_hosts_),
         .fields = {{"ps_hosts", ps_hosts_}}});
  }
  int exit_code = 0;
  while (!stop && exit_code == 0) {
    CopyOutput(kPollMillis);
    exit_code = ReapAll();
  }
  Shutdown();
  return exit_code;
}

void LocalCluster::Shutdown() {
  const auto running = [&] {
    return std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) { return t.pid >= 0; });
  };
  const auto send = [&](int signal) {
    for (const Task& task : tasks_) {
      if (task.pid >= 0) kill(task.pid, signal);
    }
  };
  send(SIGTERM);
  const int64_t deadline = Env::Real().NowNanos() + int64_t{options_.grace_seconds} * 1'000'000'000;
  bool killed = false;
  while (running()) {
    CopyOutput(kPollMillis);
    for (Task& task : tasks_) {
      if (task.pid >= 0 && waitpid(task.pid, nullptr, WNOHANG) == task.pid) task.pid = -1;
    }
    if (!killed && Env::Real().NowNanos() > deadline) {
      Log({.level = LogLevel::kWarning,
           .event = "tasks_killed",
           .text =
               StrCat("tasks did not end within ", options_.grace_seconds, " s; killing them")});
      send(SIGKILL);
      killed = true;
    }
  }
  CopyOutput(0);
  for (Task& task : tasks_) {
    if (task.output >= 0) close(task.output);
    task.output = -1;
  }
}

}  // namespace penstock
