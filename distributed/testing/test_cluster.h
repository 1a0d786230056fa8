// SPDX-License-Identifier: Apache-2.0
//
// TestCluster: real servers on loopback ports, in the process of a test. Its sessions use the
// network although they are in one process, unless the options say otherwise.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/env.h"
#include "distributed/rpc/server.h"
#include "distributed/session/session.h"

namespace penstock {

class TestCluster {
 public:
  // `jobs`: the number of tasks of each job.
  explicit TestCluster(const std::map<std::string, int>& jobs, ServerOptions options = Quick())
      : options_(std::move(options)) {
    for (const auto& [job, count] : jobs) {
      for (int i = 0; i < count; ++i) {
        ServerOptions own = options_;
        own.task = {.job = job, .task = i, .protocol = options_.task.protocol};
        CHECK_OK(own.task.cluster.AddTask(job, i, "127.0.0.1:0"));
        auto server = Server::Create(own);
        CHECK_OK(server.status());
        CHECK_OK(cluster_.AddTask(job, i, (*server)->address()));
        servers_[{job, i}] = *std::move(server);
      }
    }
    for (auto& [task, server] : servers_) {
      CHECK_OK(server->SetCluster(cluster_));
      CHECK_OK(server->Start());
    }
  }

  // Returns options with which lost tasks are noticed within a second.
  static ServerOptions Quick() {
    return {.num_threads = 2,
            .heartbeat_ms = 200,
            .keepalive_ms = 500,
            .keepalive_timeout_ms = 500,
            .create_session_timeout_ms = 2'000,
            .direct_sessions = false};
  }
  // Returns the options of Quick, with sessions that do not use the network.
  static ServerOptions Direct() {
    ServerOptions options = Quick();
    options.direct_sessions = true;
    return options;
  }

  const ClusterSpec& spec() const { return cluster_; }
  Server& server(const std::string& job, int task) { return *servers_.at({job, task}); }
  std::string target(const std::string& job = "worker", int task = 0) {
    return StrCat("grpc://", cluster_.Address(job, task));
  }
  std::unique_ptr<SessionInterface> NewSession(const SessionOptions& options = {},
                                               const std::string& job = "worker", int task = 0) {
    auto session = NewRemoteSession(target(job, task), options);
    CHECK_OK(session.status());
    return *std::move(session);
  }

  void Stop(const std::string& job, int task) { servers_.at({job, task}) = nullptr; }
  // Restarts a task on its old address.
  void Restart(const std::string& job, int task) {
    Stop(job, task);
    ServerOptions own = options_;
    own.task = {.cluster = cluster_, .job = job, .task = task, .protocol = options_.task.protocol};
    auto server = Server::Create(own);
    CHECK_OK(server.status());
    CHECK_OK((*server)->Start());
    servers_.at({job, task}) = *std::move(server);
  }

  // Waits up to a second for all steps to end; returns whether none is left.
  bool Idle() {
    for (int i = 0; i < 100; ++i) {
      int64_t left = 0;
      for (auto& [task, server] : servers_) {
        if (server == nullptr) continue;
        left += server->counts().running_steps + server->counts().parked_subscriptions;
      }
      if (left == 0) return true;
      Env::Real().SleepForNanos(10'000'000);
    }
    return false;
  }

 private:
  const ServerOptions options_;
  ClusterSpec cluster_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Server>> servers_;
};

}  // namespace penstock
