// SPDX-License-Identifier: Apache-2.0
//
// SessionTable: the sessions that a worker serves, with their leases and registered graphs.
//
// Thread-safe. Sessions and graphs are held by shared pointers, so that a step that runs keeps
// them. Functions that take a handle return Aborted, or do nothing, if the session is not known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "core/op/task_name.h"
#include "core/runtime/kernel_cache.h"
#include "distributed/transport/transport.h"
#include "distributed/worker/worker_graph.h"

namespace penstock {

// The session that CreateSession makes in a worker.
struct WorkerSessionOptions {
  std::string handle;          // unique in the cluster
  bool isolate_state = false;  // true: the session has resources of its own
  std::vector<TaskId> tasks;   // all tasks that the session uses, first that of its master
  int64_t lease_ms = 0;        // deleted if the master is silent for this long; 0: never
};

// The state of a session in a worker. Unchanged while the session is in the table, except for its
// kernels, which have their own lock.
struct WorkerSession {
  WorkerSessionOptions options;
  absl::flat_hash_map<TaskName, TaskId> tasks;
  std::map<std::string, std::shared_ptr<ResourceStore>> isolated;  // by device
  std::shared_ptr<const SessionMemory> memory;
  KernelCache kernels;
};

class SessionTable {
 public:
  // `self`: the task, for errors.
  SessionTable(TaskId self, Env& env);

  // Adds a session, and begins its lease. A session with the same handle stays as it is. Marks the
  // sessions of other incarnations of the master as superseded, which shortens their leases to a
  // fifth. Returns the handles of these sessions.
  std::vector<std::string> Add(std::shared_ptr<WorkerSession> session);
  using Graphs = std::map<uint64_t, std::shared_ptr<WorkerGraph>>;  // by number
  struct Removed {
    std::shared_ptr<WorkerSession> session;  // null: not known
    Graphs graphs;                           // use the session's kernels: destroyed first
  };
  Removed Remove(const std::string& handle);
  StatusOr<std::shared_ptr<WorkerSession>> Find(const std::string& handle) const;
  // Returns all sessions, in the order of their handles.
  std::vector<std::shared_ptr<WorkerSession>> sessions() const;
  bool empty() const;

  // Renews the leases of these sessions; returns the handles that are not known.
  std::vector<std::string> RenewLeases(const std::vector<std::string>& handles);
  struct Expired {
    std::string handle;
    int64_t silent_ns = 0;  // time since the master last renewed the lease
  };
  // Returns the sessions whose leases have ended.
  std::vector<Expired> FindExpired() const;
  // Returns the handles of the master's sessions; if `silent_only`, only those whose lease the
  // master has not renewed for a fifteenth of the lease; none if the master is in this process.
  std::vector<std::string> HandlesOf(const TaskId& master, bool silent_only) const;

  // Adds a graph; a graph with the same number stays as it is. The session may have been removed.
  void AddGraph(const std::shared_ptr<WorkerSession>& session, uint64_t number,
                std::shared_ptr<WorkerGraph> graph);
  void RemoveGraph(const std::string& handle, uint64_t number);
  StatusOr<std::shared_ptr<WorkerGraph>> FindGraph(const std::string& handle,
                                                   uint64_t number) const;
  bool has_graphs() const;
  // A registered graph, with the handle of its session.
  struct RegisteredGraph {
    std::string session;
    std::shared_ptr<WorkerGraph> graph;
  };
  // Returns all graphs, in the order of their sessions and numbers.
  std::vector<RegisteredGraph> graphs() const;

 private:
  struct Entry {
    std::shared_ptr<WorkerSession> session;
    Graphs graphs;
    int64_t last_sign_ns = 0;
    bool superseded = false;  // the task of the session's master now has another incarnation
  };
  Status UnknownError(const std::string& handle) const;
  std::vector<std::string> Supersede(const TaskId& master) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TaskId self_;
  Env& env_;
  mutable Mutex mu_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mu_);  // by handle
};

}  // namespace penstock
