// SPDX-License-Identifier: Apache-2.0
//
// Server: its status page, and the watch for steps that make no progress.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/join.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "distributed/insight/status_server.h"
#include "distributed/insight/stuck_watch.h"
#include "distributed/insight/task_report.h"
#include "distributed/rpc/server_state.h"
#include "distributed/security/peer_user.h"
#include "distributed/security/tokens.h"

namespace penstock {
namespace {

// How often the master looks for steps that make no progress.
constexpr int64_t kWatchNanos = 5'000'000'000;

}  // namespace

// Starts the server of the status page, if options.task.status_port asks for one.
Status Server::State::ShowStatus() {
  if (options.task.status_port == 0) return OkStatus();
  ASSIGN_OR_RETURN(const HostPort address, StatusAddress());
  ASSIGN_OR_RETURN(
      status, StatusServer::Create(address,
                                   {.task = [this] { return insight_service.Report(); },
                                    .cluster = [this] { return AskCluster(); },
                                    .admit = [this](const auto& visitor) { return Admit(visitor); },
                                    .names = StatusNames()}));
  return OkStatus();
}

// Returns the address of the status page: the host at which the task itself listens, with the port
// of the page. For a secured task the host is 127.0.0.1, because HTTP is not encrypted.
StatusOr<HostPort> Server::State::StatusAddress() const {
  ASSIGN_OR_RETURN(HostPort address, HostPort::Parse(listens_at));
  if (credentials->secured()) address.host = "127.0.0.1";
  address.port = options.task.status_port;
  return address;
}

// Returns the host names that the Host header of a request for the status page may contain, in
// addition to "localhost" and numeric addresses.
std::vector<std::string> Server::State::StatusNames() const {
  std::vector<std::string> names = options.status_hosts;
  for (const std::string& address : {listens_at, self.address}) {
    const StatusOr<HostPort> parsed = HostPort::Parse(address);
    if (parsed.ok()) names.push_back(parsed->host);
  }
  char host[HOST_NAME_MAX + 1] = "";
  if (gethostname(host, sizeof(host) - 1) == 0) names.push_back(host);
  return names;
}

// Returns OK if the visitor may read the status page: if the task is not secured, or the visitor
// has a token, or is a process of root or of this process's user on this host.
Status Server::State::Admit(const StatusServer::Visitor& visitor) const {
  if (!credentials->secured()) return OkStatus();
  if (credentials->tokens().Contains(Tokens::OfHeader(visitor.authorization))) return OkStatus();
  const Status user =
      CheckLoopbackPeer(visitor.host, visitor.port, "127.0.0.1", options.task.status_port);
  return Annotate(user, "this page wants the cluster's token, as bearer or as password");
}

// Waits for the reports of all tasks, at most InsightService::kTimeoutMs, and returns them.
wire::ClusterReport Server::State::AskCluster() {
  wire::ClusterReport report;
  Wait wait(Scheduler::Real(), "the reports of the tasks of a cluster");
  insight_service.AskCluster(InsightService::kTimeoutMs,
                             [&, done = wait.done()](wire::ClusterReport answer) mutable {
                               report = std::move(answer);
                               std::move(done)(OkStatus());
                             });
  (void)wait.Get();
  return report;
}

// Warns in the log of steps that make no progress, until the server is stopped.
void Server::State::WatchSteps() {
  StuckWatch watch({.patience_ms = options.stuck_after_ms,
                    .ask_task = [this] { return ReportTask(*task, *options.env); },
                    .ask_cluster = [this] { return AskCluster(); },
                    .say =
                        [this](const std::string& text) {
                          Log({.level = LogLevel::kWarning,
                               .task = self.name,
                               .event = "no_progress",
                               .text = text});
                        }});
  const int64_t interval_ns = std::min(kWatchNanos, options.stuck_after_ms * 1'000'000);
  MutexLock lock(mu);
  const auto is_stopped = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return stopped; };
  while (!stop_requested.WaitUntil(mu, options.env->NowNanos() + interval_ns, is_stopped)) {
    lock.Unlock();
    watch.Look();
    lock.Lock();
  }
}

}  // namespace penstock
