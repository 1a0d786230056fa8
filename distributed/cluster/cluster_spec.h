// SPDX-License-Identifier: Apache-2.0
//
// ClusterSpec: which tasks a cluster has, and the addresses at which other tasks call them;
// TaskConfig: a cluster and which of its tasks this process is, from command-line flags or from
// TF_CONFIG; HostPort: the parts of an address.
//
// All are value types. Each mistake is reported as one line of InvalidArgument, which names the
// flag (or TF_CONFIG) and says what to write instead.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct HostPort;

class ClusterSpec {
 public:
  // Task index -> "host:port". Indices may have gaps.
  using Tasks = std::map<int, std::string>;

  // Adds a task. InvalidArgument if the job's name or the index is not valid, if the address is not
  // "host:port" (an IPv6 host stands in brackets) or belongs to another task, or if the task was
  // added before. Several tasks may have port 0, "any free port".
  Status AddTask(const std::string& job, int index, const std::string& address);

  // Adds the address of the other replica of a task. InvalidArgument if the task was not added
  // before, the port is 0, or the address is malformed or belongs to another task.
  Status AddReplica(const std::string& job, int index, const std::string& address);

  const std::map<std::string, Tasks>& jobs() const { return jobs_; }
  bool empty() const { return jobs_.empty(); }
  // Returns the task's address, "" if there is no such task.
  std::string Address(const std::string& job, int index) const;
  // Returns the address of the task's other replica, "" if it has none.
  std::string ReplicaAddress(const std::string& job, int index) const;
  bool operator==(const ClusterSpec&) const = default;
  // Returns "ps: 0=a:2222 1=b:2222; worker: 0=c:2222".
  std::string ToString() const;

 private:
  Status CheckAddress(const std::string& job, int index, const HostPort& address) const;

  std::map<std::string, Tasks> jobs_, replicas_;
};

struct TaskConfig {
  ClusterSpec cluster;
  std::string job;
  int task = 0;
  // "HOST[:PORT]": the address at which this process listens, if that differs from its address in
  // the cluster (distributed/rpc/server.h). Not read from TF_CONFIG.
  std::string listen_address = {};
  // How tensors move between tasks: the name of a transport, the same in all tasks of a cluster.
  // "auto": shared memory between tasks that support it, else gRPC.
  std::string protocol = "auto";
  // The port of the task's status page and metrics; 0: no status page. Not read from
  // TF_CONFIG.
  int status_port = 0;
  // The index of this process among the task's two replicas: 0 is the one at Address(), 1 the one
  // at ReplicaAddress(). Not read from TF_CONFIG.
  int replica = 0;

  // Returns the address of this process in the cluster, "host:port".
  std::string address() const {
    return replica == 0 ? cluster.Address(job, task) : cluster.ReplicaAddress(job, task);
  }
  // Returns "/job:ps/replica:0/task:1".
  std::string name() const;
  // Returns whether this is the task that initialises, saves and writes summaries: the chief
  // (or master) if there is such a job, else worker 0.
  bool is_chief() const;
};

// The values of the command-line flags of the same names.
struct ClusterFlags {
  std::string ps_hosts;      // "host:port,host:port"
  std::string worker_hosts;  // as ps_hosts
  std::string job_name;      // "ps" or "worker"
  int task_index = 0;
  std::string listen_address;  // "host" or "host:port"
  std::string protocol = "auto";
  int status_port = 0;
  std::string ps_replica_hosts;  // as ps_hosts: one address for each task, or "" for no replicas
  int replica_index = 0;
};
// Adds --ps_replica_hosts and --replica_index to `*config`. InvalidArgument names the flag.
Status AddReplicas(const ClusterFlags& flags, TaskConfig* config);
// Returns the cluster, and the task in it, that the flags name.
StatusOr<TaskConfig> TaskConfigFromFlags(const ClusterFlags& flags);
// Returns the tasks that the lists of hosts name. Ignores the flags that say which task this
// is.
StatusOr<ClusterSpec> ClusterSpecFromFlags(const ClusterFlags& flags);

// Parses {"cluster": {"chief": [...], "worker": [...], "ps": [...]}, "task": {"type": .., "index":
// ..}}. A job may also be an object {"1": "host:port"}, which need not name all its tasks. A task
// of type "evaluator" is not in the cluster and has no address.
StatusOr<TaskConfig> TaskConfigFromJson(string_view json);

// The two halves of "host:port" or "[v6]:port". Parse errors say what is wrong.
struct HostPort {
  std::string host;
  int port = 0;
  static StatusOr<HostPort> Parse(string_view address);
  std::string ToString() const;
};

}  // namespace penstock
