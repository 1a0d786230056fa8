// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/session_table.h"

#include <algorithm>
#include <utility>

#include "core/base/fault_point.h"
#include "core/base/timeout.h"

namespace penstock {
namespace {

const FaultPoint kLeaseEnds(FaultPoint::kMishap, "worker/lease-ends",
                            "a task deletes a session whose master is well");

// Divisors of a session's lease. By default the lease is 60 s and the master renews it every 2 s. A
// master is not silent for a fifteenth of the lease (4 s) after a renewal; if it is superseded, its
// session expires after a fifth (12 s).
constexpr int64_t kSilentDivisor = 15, kSupersededDivisor = 5;

}  // namespace

SessionTable::SessionTable(TaskId self, Env& env) : self_(std::move(self)), env_(env) {}

std::vector<std::string> SessionTable::Add(std::shared_ptr<WorkerSession> session) {
  const int64_t now_ns = env_.NowNanos();
  MutexLock lock(mu_);
  std::vector<std::string> superseded;
  if (!session->options.tasks.empty()) superseded = Supersede(session->options.tasks[0]);
  std::string handle = session->options.handle;
  entries_.try_emplace(std::move(handle),
                       Entry{.session = std::move(session), .last_sign_ns = now_ns});
  return superseded;
}

// Does not end the sessions of the earlier incarnation at once, but only shortens their leases: by
// mistake, two live masters may have the same name and address.
std::vector<std::string> SessionTable::Supersede(const TaskId& master) {
  std::vector<std::string> handles;
  for (auto& [handle, entry] : entries_) {
    const std::vector<TaskId>& tasks = entry.session->options.tasks;
    if (tasks.empty() || tasks[0].incarnation == master.incarnation) continue;
    if (tasks[0].name == master.name && tasks[0].address == master.address) {
      entry.superseded = true;
      handles.push_back(handle);
    }
  }
  return handles;
}

SessionTable::Removed SessionTable::Remove(const std::string& handle) {
  MutexLock lock(mu_);
  const auto it = entries_.find(handle);
  if (it == entries_.end()) return {};
  Removed removed{.session = std::move(it->second.session), .graphs = std::move(it->second.graphs)};
  entries_.erase(it);
  return removed;
}

StatusOr<std::shared_ptr<WorkerSession>> SessionTable::Find(const std::string& handle) const {
  MutexLock lock(mu_);
  const auto it = entries_.find(handle);
  if (it == entries_.end()) return UnknownError(handle);
  return it->second.session;
}

Status SessionTable::UnknownError(const std::string& handle) const {
  return Aborted("session ", handle, " is not known to ", self_.ToString(),
                 "; it may have been restarted");
}

std::vector<std::shared_ptr<WorkerSession>> SessionTable::sessions() const {
  std::vector<std::shared_ptr<WorkerSession>> sessions;
  MutexLock lock(mu_);
  for (const auto& [handle, entry] : entries_) sessions.push_back(entry.session);
  return sessions;
}

bool SessionTable::empty() const {
  MutexLock lock(mu_);
  return entries_.empty();
}

std::vector<std::string> SessionTable::RenewLeases(const std::vector<std::string>& handles) {
  std::vector<std::string> unknown;
  const int64_t now_ns = env_.NowNanos();
  MutexLock lock(mu_);
  for (const std::string& handle : handles) {
    const auto it = entries_.find(handle);
    if (it == entries_.end()) {
      unknown.push_back(handle);
    } else {
      it->second.last_sign_ns = now_ns;
    }
  }
  return unknown;
}

std::vector<SessionTable::Expired> SessionTable::FindExpired() const {
  std::vector<Expired> expired;
  const int64_t now_ns = env_.NowNanos();
  MutexLock lock(mu_);
  for (const auto& [handle, entry] : entries_) {
    int64_t lease_ns = TimeoutNanos(entry.session->options.lease_ms);
    if (lease_ns == 0) continue;
    if (entry.superseded) lease_ns /= kSupersededDivisor;
    const int64_t silent_ns = now_ns - entry.last_sign_ns;
    if (silent_ns > lease_ns || kLeaseEnds.Fires()) expired.push_back({handle, silent_ns});
  }
  return expired;
}

std::vector<std::string> SessionTable::HandlesOf(const TaskId& master, bool silent_only) const {
  std::vector<std::string> handles;
  const int64_t now_ns = env_.NowNanos();
  MutexLock lock(mu_);
  for (const auto& [handle, entry] : entries_) {
    const WorkerSessionOptions& options = entry.session->options;
    if (options.tasks.empty() || options.tasks[0] == self_ || !(options.tasks[0] == master)) {
      continue;
    }
    const int64_t silent_min_ns = TimeoutNanos(options.lease_ms) / kSilentDivisor;
    if (silent_only && now_ns - entry.last_sign_ns < silent_min_ns) continue;
    handles.push_back(handle);
  }
  return handles;
}

void SessionTable::AddGraph(const std::shared_ptr<WorkerSession>& session, uint64_t number,
                            std::shared_ptr<WorkerGraph> graph) {
  MutexLock lock(mu_);
  const auto it = entries_.find(session->options.handle);
  if (it == entries_.end() || it->second.session != session) return;
  it->second.graphs.emplace(number, std::move(graph));
}

void SessionTable::RemoveGraph(const std::string& handle, uint64_t number) {
  std::shared_ptr<WorkerGraph> removed;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto it = entries_.find(handle);
  if (it == entries_.end()) return;
  const auto found = it->second.graphs.find(number);
  if (found == it->second.graphs.end()) return;
  removed = std::move(found->second);
  it->second.graphs.erase(found);
}

StatusOr<std::shared_ptr<WorkerGraph>> SessionTable::FindGraph(const std::string& handle,
                                                               uint64_t number) const {
  MutexLock lock(mu_);
  const auto it = entries_.find(handle);
  if (it == entries_.end()) return UnknownError(handle);
  const auto found = it->second.graphs.find(number);
  if (found == it->second.graphs.end()) {
    return Aborted("graph ", number, " of session ", handle, " is not known to ", self_.ToString(),
                   "; it may have been restarted");
  }
  return found->second;
}

bool SessionTable::has_graphs() const {
  MutexLock lock(mu_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return !entry.second.graphs.empty(); });
}

std::vector<SessionTable::RegisteredGraph> SessionTable::graphs() const {
  std::vector<RegisteredGraph> graphs;
  MutexLock lock(mu_);
  for (const auto& [handle, entry] : entries_) {
    for (const auto& [number, graph] : entry.graphs) graphs.push_back({handle, graph});
  }
  return graphs;
}

}  // namespace penstock
