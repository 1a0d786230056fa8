// SPDX-License-Identifier: Apache-2.0
#include "distributed/doctor/examine_host.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <limits>
#include <set>

#include "absl/strings/str_format.h"
#include "core/base/status.h"
#include "distributed/rpc/listen_address.h"

namespace penstock {
namespace {

using Level = Finding::Level;

// The numbers of open files that a task needs: kFilesOfTask for libraries, data, checkpoints and
// clients, and kFilesPerPeer for each other task (connections for calls and tensors in both
// directions, shared memory). A limit that is too low should be raised to kFilesAdvised.
constexpr uint64_t kFilesOfTask = 128, kFilesPerPeer = 8, kFilesAdvised = 65536;

constexpr double kGigabyte = 1e9;
constexpr double kLittleSpace = 1 * kGigabyte;

Status TryToWrite(const std::string& directory, Env& env) {
  RETURN_IF_ERROR(env.CreateDirectories(directory));
  const std::string path = StrCat(directory, "/penstock-doctor-", env.RandomU64());
  RETURN_IF_ERROR(env.WriteFileAtomically(path, "penstock doctor was here"));
  RETURN_IF_ERROR(env.RemoveFile(path));
  return env.SyncDirectory(directory);
}

size_t CountHosts(const ClusterSpec& cluster) {
  std::set<std::string> hosts;
  for (const auto& [job, tasks] : cluster.jobs()) {
    for (const auto& [index, address] : tasks) {
      const StatusOr<HostPort> parsed = HostPort::Parse(address);
      if (parsed.ok()) hosts.insert(parsed->host);
    }
  }
  return hosts.size();
}

}  // namespace

Findings ExamineVariables(const TaskConfig& config, const Variables& variables) {
  Findings findings;
  for (const char* name : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    if (variables(name).empty()) continue;
    const std::string exempt = variables("no_grpc_proxy").empty() ? variables("no_proxy") : "";
    findings.push_back({Level::kWarning, name,
                        StrCat("is set, no_proxy is '", exempt,
                               "': Penstock's tasks call each other directly, but a TensorFlow "
                               "client sends its calls through the proxy"),
                        "unset it for such clients, or list the hosts of the cluster in no_proxy"});
  }
  const std::string tf_config = variables("TF_CONFIG");
  if (tf_config.empty()) return findings;
  const StatusOr<TaskConfig> other = TaskConfigFromJson(tf_config);
  if (!other.ok()) {
    findings.push_back({Level::kWarning, "TF_CONFIG", std::string(other.status().message()),
                        "Penstock uses the flags, but a client in Python will read TF_CONFIG"});
  } else if (other->cluster != config.cluster ||
             (!config.job.empty() && other->name() != config.name())) {
    findings.push_back({Level::kWarning, "TF_CONFIG",
                        StrCat("says otherwise than the flags: ", other->name(), " of ",
                               other->cluster.ToString()),
                        "Penstock uses the flags; unset TF_CONFIG or make them agree"});
  }
  return findings;
}

Findings ExamineListening(const TaskConfig& config, bool runs) {
  if (config.job.empty()) return {};
  const StatusOr<HostPort> own = HostPort::Parse(config.address());
  if (!own.ok()) return {{Level::kError, config.name(), std::string(own.status().message())}};
  const StatusOr<HostPort> address = FindListenAddress(*own, config.listen_address);
  const Status status = runs || !address.ok() ? address.status() : CheckListenAddress(*address);
  if (!status.ok()) {
    return {{Level::kError, config.name(), std::string(status.message()),
             "free the port, or give the task another one in all lists of hosts"}};
  }
  const std::string what = StrCat(runs ? "listens at " : "can listen at ", address->ToString());
  return {{Level::kOk, config.name(), what}};
}

uint64_t FileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<uint64_t>::max();
  return limit.rlim_cur;
}

Findings ExamineFileLimit(const ClusterSpec& cluster, uint64_t limit) {
  uint64_t needed = kFilesOfTask;
  for (const auto& [job, tasks] : cluster.jobs()) needed += kFilesPerPeer * tasks.size();
  if (limit >= needed) return {};
  return {{Level::kWarning, "the limit of open files",
           StrCat("is ", limit, " for this process; a task of this cluster may need ", needed,
                  " for connections, checkpoints and data"),
           StrCat("raise it: ulimit -n ", kFilesAdvised, ", or LimitNOFILE= of systemd")}};
}

Findings ExamineCheckpoints(const std::string& directory, const ClusterSpec& cluster, Env& env) {
  const std::string subject = StrCat("--checkpoint_dir=", directory);
  const Status written = TryToWrite(directory, env);
  if (!written.ok()) {
    return {{Level::kError, subject, StrCat("no checkpoint could be written: ", written.message()),
             "the task's user needs write access, and the disk needs free space"}};
  }
  Findings findings;
  struct statvfs disk;
  const bool known = statvfs(directory.c_str(), &disk) == 0;
  const double free_bytes =
      known ? static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) : 0;
  const std::string left = known ? absl::StrFormat("%.1f GB are free", free_bytes / kGigabyte)
                                 : "its free space is not known";
  if (known && free_bytes < kLittleSpace) {
    findings.push_back({Level::kWarning, subject, left,
                        "a checkpoint takes the size of all variables, and the previous one is "
                        "kept while it is written"});
  } else {
    findings.push_back({Level::kOk, subject, StrCat("can be written; ", left)});
  }
  if (CountHosts(cluster) > 1) {
    findings.push_back({Level::kWarning, subject,
                        "tasks run on several hosts, and each writes the variables that it holds",
                        "the directory must be the same shared one on all of them"});
  }
  return findings;
}

}  // namespace penstock
