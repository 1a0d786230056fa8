// SPDX-License-Identifier: Apache-2.0
#include "distributed/cluster/cluster_spec.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/op/task_name.h"

namespace penstock {
namespace {

// The largest index of a task. A larger one is a mistake of the user, and arrays that are indexed
// by task would take much memory.
constexpr int kTaskIndexMax = 1'000'000;

bool IsJobName(string_view name) {
  if (name.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

// Adds the tasks of one --*_hosts flag.
Status AddHosts(string_view flag, const std::string& job, const std::string& hosts,
                ClusterSpec* cluster) {
  if (hosts.empty()) return OkStatus();
  int index = 0;
  for (string_view host : absl::StrSplit(hosts, ',')) {
    host = absl::StripAsciiWhitespace(host);
    if (host.empty()) {
      return InvalidArgument(flag, ": entry ", index, " is empty; remove the extra comma in '",
                             hosts, "'");
    }
    const Status added = cluster->AddTask(job, index++, std::string(host));
    if (!added.ok()) return InvalidArgument(flag, ": ", added.message());
  }
  return OkStatus();
}

std::string Find(const std::map<std::string, ClusterSpec::Tasks>& jobs, const std::string& job,
                 int index) {
  const auto found = jobs.find(job);
  if (found == jobs.end()) return "";
  const auto task = found->second.find(index);
  return task == found->second.end() ? "" : task->second;
}

std::string IndexRange(const ClusterSpec::Tasks& tasks) {
  if (tasks.size() == 1) return StrCat("only task ", tasks.begin()->first);
  return StrCat("tasks ", tasks.begin()->first, " to ", tasks.rbegin()->first);
}

}  // namespace

StatusOr<HostPort> HostPort::Parse(string_view address) {
  const auto wrong = [address](string_view what) {
    return InvalidArgument("'", address, "' is not host:port (", what,
                           "); write for example localhost:2222");
  };
  const size_t colon = address.rfind(':');
  if (colon == string_view::npos) return wrong("there is no port");
  string_view host = address.substr(0, colon);
  const string_view port = address.substr(colon + 1);
  if (host.empty()) return wrong("there is no host");
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != string_view::npos) {
    return wrong("an IPv6 address stands in brackets, and there is no protocol in front");
  }
  if (host.find_first_of("/[] \t,;@?#") != string_view::npos) {
    return wrong("the host has a character that hosts have not");
  }
  HostPort parsed{.host = std::string(host)};
  if (port.empty() || port.find_first_not_of("0123456789") != string_view::npos ||
      !absl::SimpleAtoi(port, &parsed.port) || parsed.port > 65535) {
    return wrong("the port is not a number from 0 to 65535");
  }
  return parsed;
}

std::string HostPort::ToString() const {
  return host.find(':') == std::string::npos ? StrCat(host, ":", port)
                                             : StrCat("[", host, "]:", port);
}

Status ClusterSpec::AddTask(const std::string& job, int index, const std::string& address) {
  if (!IsJobName(job)) {
    return InvalidArgument("job name '", job, "' is not made of letters, digits and '_'");
  }
  if (index < 0 || index > kTaskIndexMax) {
    return InvalidArgument("task index ", index, " of job '", job, "' is not from 0 to ",
                           kTaskIndexMax);
  }
  ASSIGN_OR_RETURN(const HostPort parsed, HostPort::Parse(address));
  RETURN_IF_ERROR(CheckAddress(job, index, parsed));
  if (!jobs_[job].emplace(index, parsed.ToString()).second) {
    return InvalidArgument("task ", index, " of job '", job, "' is given twice");
  }
  return OkStatus();
}

Status ClusterSpec::CheckAddress(const std::string& job, int index, const HostPort& address) const {
  for (const auto* const all : {&jobs_, &replicas_}) {
    for (const auto& [other_job, tasks] : *all) {
      for (const auto& [other, other_address] : tasks) {
        if (address.port == 0 || other_address != address.ToString()) continue;
        return InvalidArgument("'", address.ToString(), "' is the address of both ", other_job, " ",
                               other, " and ", job, " ", index, "; give each task its own");
      }
    }
  }
  return OkStatus();
}

Status ClusterSpec::AddReplica(const std::string& job, int index, const std::string& address) {
  if (Address(job, index).empty()) {
    return InvalidArgument("'", address, "' is for ", job, " ", index,
                           ", which is not in the cluster");
  }
  ASSIGN_OR_RETURN(const HostPort parsed, HostPort::Parse(address));
  if (parsed.port == 0) {
    return InvalidArgument("'", address, "': a replica needs a port that the others know");
  }
  RETURN_IF_ERROR(CheckAddress(job, index, parsed));
  replicas_[job][index] = parsed.ToString();
  return OkStatus();
}

std::string ClusterSpec::Address(const std::string& job, int index) const {
  return Find(jobs_, job, index);
}

std::string ClusterSpec::ReplicaAddress(const std::string& job, int index) const {
  return Find(replicas_, job, index);
}

std::string ClusterSpec::ToString() const {
  std::vector<std::string> jobs;
  for (const auto& [job, tasks] : jobs_) {
    std::string text = StrCat(job, ":");
    for (const auto& [index, address] : tasks) StrAppend(&text, " ", index, "=", address);
    jobs.push_back(std::move(text));
  }
  return absl::StrJoin(jobs, "; ");
}

std::string TaskConfig::name() const { return TaskName{.job = job, .task = task}.ToString(); }

bool TaskConfig::is_chief() const {
  if (job == "chief" || job == "master") return true;
  const bool has_chief = cluster.jobs().count("chief") > 0 || cluster.jobs().count("master") > 0;
  return job == "worker" && task == 0 && !has_chief;
}

StatusOr<ClusterSpec> ClusterSpecFromFlags(const ClusterFlags& flags) {
  ClusterSpec cluster;
  RETURN_IF_ERROR(AddHosts("--ps_hosts", "ps", flags.ps_hosts, &cluster));
  RETURN_IF_ERROR(AddHosts("--worker_hosts", "worker", flags.worker_hosts, &cluster));
  return cluster;
}

StatusOr<TaskConfig> TaskConfigFromFlags(const ClusterFlags& flags) {
  TaskConfig config{.job = flags.job_name,
                    .task = flags.task_index,
                    .listen_address = flags.listen_address,
                    .protocol = flags.protocol,
                    .status_port = flags.status_port};
  ASSIGN_OR_RETURN(config.cluster, ClusterSpecFromFlags(flags));
  if (flags.job_name != "ps" && flags.job_name != "worker") {
    return InvalidArgument("--job_name: '", flags.job_name,
                           "' is not a job of the cluster; write ps or worker");
  }
  const std::string hosts = StrCat("--", flags.job_name, "_hosts");
  const auto tasks = config.cluster.jobs().find(flags.job_name);
  if (tasks == config.cluster.jobs().end()) {
    return InvalidArgument(hosts, ": empty, but --job_name=", flags.job_name,
                           "; list the addresses of that job as host:port,host:port");
  }
  if (tasks->second.count(flags.task_index) == 0) {
    return InvalidArgument("--task_index: ", flags.task_index, " is out of range; ", hosts, " has ",
                           IndexRange(tasks->second));
  }
  RETURN_IF_ERROR(AddReplicas(flags, &config));
  return config;
}

Status AddReplicas(const ClusterFlags& flags, TaskConfig* config) {
  if (flags.replica_index != 0 && flags.replica_index != 1) {
    return InvalidArgument("--replica_index: ", flags.replica_index, ", must be 0 or 1");
  }
  if (flags.replica_index == 1 && (flags.ps_replica_hosts.empty() || config->job != "ps")) {
    return InvalidArgument(
        "--replica_index: only a ps has two replicas, and --ps_replica_hosts "
        "says where they are");
  }
  config->replica = flags.replica_index;
  if (flags.ps_replica_hosts.empty()) return OkStatus();
  const auto jobs = config->cluster.jobs();
  const size_t ps = jobs.count("ps") == 0 ? 0 : jobs.at("ps").size();
  const std::vector<std::string> hosts = absl::StrSplit(flags.ps_replica_hosts, ',');
  if (hosts.size() != ps) {
    return InvalidArgument("--ps_replica_hosts: ", hosts.size(), " addresses for ", ps,
                           " parameter servers; give one for each of --ps_hosts");
  }
  if (jobs.size() < 2) {
    return InvalidArgument(
        "--ps_replica_hosts: replicas need a worker in the cluster, which "
        "decides between them when they lose each other");
  }
  for (size_t i = 0; i < hosts.size(); ++i) {
    const Status added = config->cluster.AddReplica(
        "ps", static_cast<int>(i), std::string(absl::StripAsciiWhitespace(hosts[i])));
    if (!added.ok()) return InvalidArgument("--ps_replica_hosts: ", added.message());
  }
  return OkStatus();
}

}  // namespace penstock
