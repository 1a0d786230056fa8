// SPDX-License-Identifier: Apache-2.0
#include "distributed/doctor/examine_cluster.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "core/base/status.h"
#include "core/base/version.h"
#include "core/op/task_name.h"
#include "distributed/rpc/protocol.h"

namespace penstock {
namespace {

using Level = Finding::Level;
using Outcome = TaskProbe::Outcome;

constexpr double kClockErrorSeconds = 1;

std::string NameOf(const ProbedTask& task) {
  return TaskName{.job = task.job, .task = task.index}.ToString();
}
std::string SubjectOf(const ProbedTask& task) {
  return StrCat("/job:", task.job, "/task:", task.index, " at ", task.address);
}

bool IsLoopback(const std::string& address) {
  const StatusOr<HostPort> parsed = HostPort::Parse(address);
  if (!parsed.ok()) return false;
  const std::string& host = parsed->host;
  return host == "localhost" || host == "::1" || host.compare(0, 4, "127.") == 0;
}

class Examination {
 public:
  Examination(const TaskConfig& config, const std::vector<ProbedTask>& tasks)
      : config_(config), tasks_(tasks) {
    for (const ProbedTask& task : tasks) {
      other_serves_ |= task.probe.outcome == Outcome::kServes && !IsOwnTask(task);
    }
  }

  Findings Run() {
    CheckLoopback();
    CheckJobs();
    for (const ProbedTask& task : tasks_) CheckTask(task);
    return std::move(findings_);
  }

 private:
  void Add(Level level, std::string subject, std::string what, std::string advice = "") {
    findings_.push_back({level, std::move(subject), std::move(what), std::move(advice)});
  }
  bool IsOwnTask(const ProbedTask& task) const {
    return task.job == config_.job && task.index == config_.task &&
           task.second_replica == (config_.replica == 1);
  }

  void CheckLoopback() {
    std::string loopback, other;
    for (const ProbedTask& task : tasks_) {
      (IsLoopback(task.address) ? loopback : other) = task.address;
    }
    if (loopback.empty() || other.empty()) return;
    Add(Level::kError, "the cluster",
        StrCat("has '", loopback, "', which every host takes for itself, beside '", other, "'"),
        "give each task an address at which the hosts of all other tasks reach it");
  }

  void CheckJobs() {
    const auto& jobs = config_.cluster.jobs();
    if (jobs.count("ps") == 0) {
      Add(Level::kWarning, "the cluster", "has no ps: variables live on the workers",
          "list the parameter servers in --ps_hosts, if there should be any");
    }
    const bool has_chief = jobs.count("chief") > 0 || jobs.count("master") > 0;
    const auto workers = jobs.find("worker");
    if (has_chief || (workers != jobs.end() && workers->second.count(0) > 0)) return;
    Add(Level::kError, "the cluster",
        "has no chief: no task initialises or saves the variables, and all workers wait",
        "add worker 0, or a job \"chief\"");
  }

  void CheckTask(const ProbedTask& task) {
    const std::string subject = SubjectOf(task);
    const TaskProbe& probe = task.probe;
    switch (probe.outcome) {
      case Outcome::kServes:
        return CheckAnswer(task);
      case Outcome::kUnresolved:
        return Add(Level::kError, subject, StrCat("the name has no address: ", probe.detail),
                   "check the spelling, DNS and /etc/hosts on this host");
      case Outcome::kRefused:
        return NotRunning(task);
      case Outcome::kUnreachable:
        return Add(Level::kError, subject, StrCat("nothing answers: ", probe.detail),
                   "check that the host is up, and that no firewall keeps this host from the port");
      case Outcome::kSilent:
        return Add(
            Level::kError, subject, StrCat("is connected to, but says nothing: ", probe.detail),
            "the process is stopped (SIGSTOP, a debugger), still starting, or not Penstock's");
      case Outcome::kMismatch:
        return Add(Level::kError, subject, StrCat("does not let this process in: ", probe.detail),
                   "give this process and all tasks the same --tls_ca and --token_file, and "
                   "certificates of that authority: see SECURITY.md");
      case Outcome::kForeign:
        return Add(Level::kError, subject,
                   StrCat("what listens there is not a task of Penstock: ", probe.detail),
                   "another program has the port; TensorFlow's own servers cannot be mixed in");
    }
  }

  void NotRunning(const ProbedTask& task) {
    if (IsOwnTask(task))
      return Add(Level::kOk, SubjectOf(task), "not running yet: this is the task");
    Add(other_serves_ ? Level::kError : Level::kWarning, SubjectOf(task),
        StrCat("is not running: ", task.probe.detail),
        other_serves_ ? "start it, or look why it ended: sessions wait for it" : "");
  }

  void CheckAnswer(const ProbedTask& task) {
    const size_t before = findings_.size();
    CheckIdentity(task);
    CheckVersions(task);
    CheckSpecification(task);
    for (const std::string& difference : task.probe.program_differences) {
      Add(Level::kWarning, SubjectOf(task), difference,
          "stop all workers, and start them with one program");
    }
    if (std::abs(task.probe.clock_ahead_s) > kClockErrorSeconds) {
      Add(Level::kWarning, SubjectOf(task),
          absl::StrFormat("its clock is %.1f s %s this host's", std::abs(task.probe.clock_ahead_s),
                          task.probe.clock_ahead_s > 0 ? "ahead of" : "behind"),
          "times in logs and traces cannot be compared; synchronise the clocks (NTP)");
    }
    if (findings_.size() > before) return;
    Add(Level::kOk, SubjectOf(task),
        absl::StrFormat("serves, version %s, answers in %.1f ms", task.probe.version,
                        task.probe.round_trip_ms));
  }

  void CheckIdentity(const ProbedTask& task) {
    const TaskProbe& probe = task.probe;
    if (probe.name != NameOf(task)) {
      Add(Level::kError, SubjectOf(task), StrCat("says that it is ", probe.name),
          "addresses are swapped, or the task was started with another --job_name, --task_index "
          "or list of hosts");
    }
    const auto [other, is_new] = seen_.try_emplace(probe.incarnation, task.address);
    if (is_new) return;
    Add(Level::kError, SubjectOf(task), StrCat("is the same process as ", other->second),
        "two addresses lead to one task; give each task a port or a host of its own");
  }

  void CheckVersions(const ProbedTask& task) {
    const TaskProbe& probe = task.probe;
    if (probe.protocol_version != kProtocolVersion) {
      Add(Level::kError, SubjectOf(task),
          StrCat("speaks version ", probe.protocol_version,
                 " of the worker protocol, this program ", kProtocolVersion),
          "install one version of Penstock on all hosts");
    } else if (probe.version != kVersion) {
      Add(Level::kWarning, SubjectOf(task),
          StrCat("is of version ", probe.version, ", this program of ", kVersion),
          "install one version of Penstock on all hosts");
    }
    if (probe.protocol == config_.protocol) return;
    Add(Level::kError, SubjectOf(task),
        StrCat("moves tensors by protocol '", probe.protocol, "', expected '", config_.protocol,
               "'"),
        "start all tasks with the same --protocol");
  }

  // Compares the cluster that a task was started with to the one of this process. The task need not
  // know all tasks (TF_CONFIG may leave tasks out), but the addresses that it has must agree.
  void CheckSpecification(const ProbedTask& task) {
    for (const auto& [job, tasks] : task.probe.cluster.jobs()) {
      for (const auto& [index, address] : tasks) {
        const std::string ours = config_.cluster.Address(job, index);
        const std::string task_name = StrCat("/job:", job, "/task:", index);
        if (ours.empty()) {
          Add(Level::kWarning, SubjectOf(task),
              StrCat("was started with a ", task_name, " at ", address,
                     ", which the cluster here does not have"),
              "start all tasks with the same lists of hosts");
        } else if (ours != address) {
          Add(Level::kWarning, SubjectOf(task),
              StrCat("was started with ", task_name, " at ", address, ", here it is at ", ours),
              "harmless if both lead to the same task; else use the same lists of hosts");
        }
      }
    }
  }

  const TaskConfig& config_;
  const std::vector<ProbedTask>& tasks_;
  bool other_serves_ = false;             // a task other than this process's own
  std::map<uint64_t, std::string> seen_;  // addresses by incarnation
  Findings findings_;
};

}  // namespace

std::vector<ProbedTask> TasksOf(const ClusterSpec& cluster) {
  std::vector<ProbedTask> tasks;
  for (const auto& [job, addresses] : cluster.jobs()) {
    for (const auto& [index, address] : addresses) {
      tasks.push_back({.job = job, .index = index, .address = address});
      const std::string second = cluster.ReplicaAddress(job, index);
      if (second.empty()) continue;
      tasks.push_back({.job = job, .index = index, .address = second, .second_replica = true});
    }
  }
  return tasks;
}

Findings ExamineCluster(const TaskConfig& config, const std::vector<ProbedTask>& tasks) {
  return Examination(config, tasks).Run();
}

Findings ExamineClusterAtStart(const TaskConfig& config, std::vector<ProbedTask> tasks) {
  std::erase_if(tasks, [](const ProbedTask& task) {
    return task.probe.outcome == Outcome::kRefused || task.probe.outcome == Outcome::kSilent ||
           task.probe.outcome == Outcome::kUnreachable;
  });
  Findings findings = ExamineCluster(config, tasks);
  std::erase_if(findings, [](const Finding& finding) { return finding.level == Level::kOk; });
  return findings;
}

}  // namespace penstock
