// SPDX-License-Identifier: Apache-2.0
//
// InsightService: the gRPC service that reports the state of a task and of its cluster to tools
// (proto/penstock/insight.proto). It answers even while all threads of the pool are
// busy: its calls have threads of their own.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "core/base/done.h"
#include "core/base/scheduler.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/replica/replica.h"
#include "distributed/rpc/call_threads.h"
#include "distributed/task/task.h"
#include "proto/penstock/insight.grpc.pb.h"

namespace penstock {

class InsightService {
 public:
  struct Options {
    Task* task = nullptr;        // this and the following are borrowed
    Replica* replica = nullptr;  // null: the task has one process
    Env* env = nullptr;
    Scheduler* threads = nullptr;
    Channels* channels = nullptr;
    CompletionLoop* loop = nullptr;
  };
  static constexpr int64_t kTimeoutMs = 1'500;  // the timeout of requests that name none
  using ClusterAnswer = absl::AnyInvocable<void(wire::ClusterReport) &&>;

  // Returns the service, to be registered with the server.
  grpc::Service& service() { return service_; }
  // Begins to take calls. REQUIRES: the server runs. The loop polls `queue`.
  void Listen(const Options& options, grpc::ServerCompletionQueue& queue);
  // Asks every process of the cluster for its report. The answer has an error for each process that
  // does not answer within `timeout_ms`. `answer` is called once, on any thread. REQUIRES: Listen
  // was called.
  void AskCluster(int64_t timeout_ms, ClusterAnswer answer);
  // Returns the current report of this task. REQUIRES: Listen was called.
  wire::TaskReport Report() const;
  // Waits until no call runs on a thread of its own any more.
  void WaitForCalls() { call_threads_.Wait(); }

 private:
  struct Question;
  void ListenForTraces(grpc::ServerCompletionQueue& queue);
  void AskProcess(const std::shared_ptr<Question>& question, wire::ClusterTask* process, Done part);

  Options options_;
  wire::Insight::AsyncService service_;
  CallThreads call_threads_;
};

}  // namespace penstock
