// SPDX-License-Identifier: Apache-2.0
#include "tools/benchmark/measured_cluster.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/env.h"
#include "tools/benchmark/workloads.h"

namespace penstock::benchmark {

using Json = nlohmann::json;

namespace {

constexpr char kDefaultProtocol[] = "auto";

// Parses the number of workers of the measurement `name`.
StatusOr<int> WorkersOf(const std::string& name, const std::string& workers) {
  int count = 0;
  if (!absl::SimpleAtoi(workers, &count) || count < 1 || count > 99) {
    return InvalidArgument(name, "/", workers, ": expected 1 to 99 workers");
  }
  return count;
}

}  // namespace

// A child process of this program that runs one task, connected by two pipes.
class MeasuredCluster::Task {
 public:
  static StatusOr<std::unique_ptr<Task>> Start(const std::string& job, int index,
                                               const std::string& protocol) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0) return ResourceExhausted("no pipe for a task");
    if (pipe2(from, O_CLOEXEC) != 0) {
      close(to[0]);
      close(to[1]);
      return ResourceExhausted("no pipe for a task");
    }
    const std::string number = StrCat(index);
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execl("/proc/self/exe", "penstock_side", "--task", job.c_str(), number.c_str(),
            protocol.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    auto task = std::make_unique<Task>(pid, to[1], from[0]);
    if (pid < 0) return ResourceExhausted("no process for a task");
    ASSIGN_OR_RETURN(const Json hello, task->Answer("address"));
    task->address_ = hello.get<std::string>();
    return task;
  }
  Task(pid_t pid, int to, int from) : pid_(pid), to_(fdopen(to, "w")), from_(fdopen(from, "r")) {}
  ~Task() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::fclose(to_);
    std::fclose(from_);
  }

  void Ask(const std::string& what) {
    std::fprintf(to_, "%s\n", what.c_str());
    std::fflush(to_);
  }
  // Reads the next line, an object in JSON, and returns its value for `key`. Has no timeout,
  // because tools/bench has one.
  StatusOr<Json> Answer(const std::string& key) {
    char line[4096];
    if (std::fgets(line, sizeof(line), from_) == nullptr) return Unavailable("a task has ended");
    const Json json = Json::parse(line, nullptr, false);
    if (json.contains("error")) return Internal(json["error"].get<std::string>());
    if (!json.contains(key)) return Internal("a task answered: ", line);
    return json[key];
  }
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
  FILE* const to_;
  FILE* const from_;
  std::string address_;
};

MeasuredCluster::MeasuredCluster() {
  signal(SIGPIPE, SIG_IGN);  // writing to a task that has ended must fail only one measurement
}
MeasuredCluster::~MeasuredCluster() = default;

Status MeasuredCluster::Start(const std::string& protocol, int workers) {
  tasks_.clear();
  std::vector<std::unique_ptr<Task>> tasks;
  Json cluster = {{"ps", Json::array()}, {"worker", Json::array()}};
  for (int i = -1; i < workers; ++i) {
    const std::string job = i < 0 ? "ps" : "worker";
    ASSIGN_OR_RETURN(auto task, Task::Start(job, std::max(i, 0), protocol));
    cluster[job].push_back(task->address());
    tasks.push_back(std::move(task));
  }
  for (auto& task : tasks) task->Ask(cluster.dump());
  for (auto& task : tasks) RETURN_IF_ERROR(task->Answer("serves").status());
  tasks_ = std::move(tasks);
  return OkStatus();
}

StatusOr<double> MeasuredCluster::Seconds(const std::string& step) {
  for (size_t i = 1; i < tasks_.size(); ++i) tasks_[i]->Ask(step);
  double sum = 0;
  for (size_t i = 1; i < tasks_.size(); ++i) {
    ASSIGN_OR_RETURN(const Json seconds, tasks_[i]->Answer("value"));
    sum += seconds.get<double>();
  }
  return sum / static_cast<double>(tasks_.size() - 1);
}

StatusOr<Round> MeasuredCluster::PrepareNullStep(const std::string& protocol,
                                                 const std::string& workers) {
  ASSIGN_OR_RETURN(const int count, WorkersOf("null_step", workers));
  RETURN_IF_ERROR(Start(protocol, count));
  return Round([this]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, Seconds("null_step"));
    return seconds * 1e6;
  });
}

StatusOr<Round> MeasuredCluster::PrepareTransfer(const std::string& protocol,
                                                 const std::string& size) {
  ASSIGN_OR_RETURN(const int64_t bytes, TransferBytes(size));
  RETURN_IF_ERROR(Start(protocol, 1));
  return Round([this, bytes]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, Seconds(StrCat("transfer ", bytes)));
    return static_cast<double>(bytes) / seconds / 1e9;
  });
}

StatusOr<Round> MeasuredCluster::PrepareAllReduce(const std::string& protocol,
                                                  const std::string& size,
                                                  const std::string& workers) {
  ASSIGN_OR_RETURN(const int64_t bytes, TransferBytes(size));
  ASSIGN_OR_RETURN(const int count, WorkersOf("all_reduce", workers));
  RETURN_IF_ERROR(Start(protocol, count));
  const std::string step = StrCat("all_reduce ", bytes, " ", count, " ", AllReduceCount(bytes));
  RETURN_IF_ERROR(Seconds(step).status());  // warm-up
  return Round([this, step]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, Seconds(step));
    return seconds * 1e6;
  });
}

StatusOr<Round> MeasuredCluster::PrepareIdleServer(const std::string& what) {
  if (what == "start_ms") {
    return Round([this]() -> StatusOr<double> {
      tasks_.clear();
      const int64_t begin = Env::Real().NowNanos();
      RETURN_IF_ERROR(Start(kDefaultProtocol, 0));
      return static_cast<double>(Env::Real().NowNanos() - begin) / 1e6;
    });
  }
  if (what != "rss_mb") return InvalidArgument("no measurement of an idle server '", what, "'");
  RETURN_IF_ERROR(Start(kDefaultProtocol, 0));
  return Round([this]() -> StatusOr<double> {
    ASSIGN_OR_RETURN(const std::string status,
                     Env::Real().ReadFile(StrCat("/proc/", tasks_[0]->pid(), "/status")));
    const size_t at = status.find("VmRSS:");
    int64_t kilobytes = 0;
    if (at == std::string::npos ||
        std::sscanf(status.c_str() + at, "VmRSS: %ld", &kilobytes) != 1) {
      return Internal("no VmRSS in /proc");
    }
    return static_cast<double>(kilobytes) / 1024;
  });
}

}  // namespace penstock::benchmark
