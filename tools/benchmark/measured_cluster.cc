// SPDX-License-Identifier: Apache-2.0
#include "tools/benchmark/measured_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "client/program.h"
#include "client/session.h"
#include "core/base/env.h"
#include "distributed/server.h"
#include "tools/benchmark/workloads.h"

namespace penstock::benchmark {

using client::Program;
using client::Session;
using client::Variable;
using Json = nlohmann::json;

namespace {

StatusOr<std::vector<std::string>> FreeAddresses(int count) {
  std::vector<std::string> addresses;
  std::vector<int> sockets;
  for (int i = 0; i < count; ++i) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) return Unavailable("bind");
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    addresses.push_back(StrCat("127.0.0.1:", ntohs(address.sin_port)));
    sockets.push_back(fd);
  }
  for (int fd : sockets) close(fd);
  return addresses;
}

}  // namespace

// A process of this program that serves as one task and answers on a pipe.
class MeasuredCluster::Task {
 public:
  static StatusOr<std::unique_ptr<Task>> Start(const std::string& json) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return ResourceExhausted("pipe");
    auto task = std::make_unique<Task>();
    task->pid_ = fork();
    if (task->pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execl("/proc/self/exe", "penstock_side", "--task", json.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    task->to_ = fdopen(to[1], "w");
    task->from_ = fdopen(from[0], "r");
    return task;
  }
  ~Task() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::fclose(to_);
    std::fclose(from_);
  }

  void Ask(const std::string& what) {
    std::fprintf(to_, "%s\n", what.c_str());
    std::fflush(to_);
  }
  StatusOr<double> Answer() {
    char line[4096];
    if (std::fgets(line, sizeof(line), from_) == nullptr) return Unavailable("a task has ended");
    const Json json = Json::parse(line, nullptr, false);
    if (json.contains("error")) return Internal(json["error"].get<std::string>());
    if (!json.contains("value")) return Internal("a task answered: ", line);
    return json["value"].get<double>();
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

MeasuredCluster::MeasuredCluster() = default;
MeasuredCluster::~MeasuredCluster() = default;

Status MeasuredCluster::Start(int workers) {
  if (static_cast<int>(tasks_.size()) == workers + 1) return OkStatus();
  tasks_.clear();
  ASSIGN_OR_RETURN(std::vector<std::string> addresses, FreeAddresses(workers + 1));
  const std::string ps = addresses.front();
  addresses.erase(addresses.begin());
  const std::string worker_hosts = absl::StrJoin(addresses, ",");
  for (int i = -1; i < workers; ++i) {
    const Json config = {ps, worker_hosts, i < 0 ? "ps" : "worker", std::max(i, 0)};
    ASSIGN_OR_RETURN(auto task, Task::Start(config.dump()));
    RETURN_IF_ERROR(task->Answer().status());  // it serves
    tasks_.push_back(std::move(task));
  }
  return OkStatus();
}

StatusOr<double> MeasuredCluster::Measure(const std::string& kind, const std::string& what) {
  int workers = 1;
  if (kind == "null_step" && (!absl::SimpleAtoi(what, &workers) || workers < 1)) {
    return InvalidArgument("null_step/", what, ": how many workers?");
  }
  RETURN_IF_ERROR(Start(workers));
  for (int i = 1; i <= workers; ++i) tasks_[i]->Ask(StrCat(kind, "/", what));
  double sum = 0;
  for (int i = 1; i <= workers; ++i) {
    ASSIGN_OR_RETURN(const double seconds, tasks_[i]->Answer());
    sum += seconds;
  }
  const double seconds = sum / workers;
  if (kind == "null_step") return seconds * 1e6;
  ASSIGN_OR_RETURN(const int64_t bytes, TransferBytes(what));
  return static_cast<double>(bytes) / seconds / 1e9;
}

StatusOr<double> MeasuredCluster::MeasureIdleServer(const std::string& what) {
  tasks_.clear();
  const int64_t begin = Env::Real().NowNanos();
  RETURN_IF_ERROR(Start(0));
  if (what == "start_ms") return static_cast<double>(Env::Real().NowNanos() - begin) / 1e6;
  ASSIGN_OR_RETURN(const std::string status,
                   Env::Real().ReadFile(StrCat("/proc/", tasks_[0]->pid(), "/status")));
  const size_t at = status.find("VmRSS:");
  int64_t kilobytes = 0;
  if (at == std::string::npos || std::sscanf(status.c_str() + at, "VmRSS: %ld", &kilobytes) != 1) {
    return Internal("no VmRSS in /proc");
  }
  return static_cast<double>(kilobytes) / 1024;
}

namespace {

// The step that a worker repeats: reads a variable of the ps and, in a null step, adds one.
StatusOr<Output> BuildStep(Program& program, const std::string& what, const std::string& here,
                           Output* init) {
  const bool transfer = what.rfind("transfer/", 0) == 0;
  int64_t elements = 1;
  if (transfer) {
    ASSIGN_OR_RETURN(const int64_t bytes, TransferBytes(what.substr(9)));
    elements = bytes / 4;
  }
  Output value;
  {
    const auto ps = program.DeviceScope("/job:ps/task:0");
    const Variable v(program, StrCat("v_", elements), Shape({elements}), client::Ones());
    *init = program.Initialize({v});
    value = v.Read();
  }
  const auto device = program.DeviceScope(here);
  const Output result = transfer ? Identity(value) : value + 1.0;
  RETURN_IF_ERROR(program.status());
  return result;
}

StatusOr<double> MeasureStep(const Server& server, const std::string& what,
                             const std::string& here) {
  Program program;
  Output init;
  ASSIGN_OR_RETURN(const Output step, BuildStep(program, what, here, &init));
  SessionOptions options;
  options.device_filters = {"/job:ps", here};
  ASSIGN_OR_RETURN(auto session, Session::New(program, server.target(), options));
  RETURN_IF_ERROR(session->Execute(init));
  ASSIGN_OR_RETURN(const client::Callable run, session->MakeCallable({}, {}, {step}));
  return MedianSeconds([&] { return run().status(); });
}

void Say(const Json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

Status ServeAndMeasure(const Json& config) {
  const ClusterFlags flags = {.ps_hosts = config[0],
                              .worker_hosts = config[1],
                              .job_name = config[2],
                              .task_index = config[3]};
  // A server alone, to be looked at while it is idle.
  ClusterFlags alone = flags;
  if (alone.worker_hosts.empty()) alone.worker_hosts = "127.0.0.1:1";
  ASSIGN_OR_RETURN(const TaskConfig task, TaskConfigFromFlags(alone));
  ASSIGN_OR_RETURN(auto server, Server::Create({.task = task}));
  RETURN_IF_ERROR(server->Start());
  Say({{"value", 0}});
  const std::string here = StrCat("/job:worker/task:", flags.task_index);
  std::string what;
  while (std::getline(std::cin, what)) {
    const StatusOr<double> value = MeasureStep(*server, what, here);
    Say(value.ok() ? Json{{"value", *value}}
                   : Json{{"error", std::string(value.status().message())}});
  }
  return OkStatus();
}

}  // namespace

int RunMeasuredTask(const std::string& json) {
  const Json config = Json::parse(json, nullptr, false);
  if (!config.is_array() || config.size() != 4) {
    std::fprintf(stderr, "--task: expected [ps_hosts, worker_hosts, job, index], got %s\n",
                 json.c_str());
    return 2;
  }
  const Status served = ServeAndMeasure(config);
  if (!served.ok()) Say({{"error", std::string(served.message())}});
  return served.ok() ? 0 : 1;
}

}  // namespace penstock::benchmark
