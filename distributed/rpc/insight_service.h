// SPDX-License-Identifier: Apache-2.0
//
// InsightService: what a task and its cluster say to an operator (proto/penstock/insight.proto).
// Answers while all threads of the pool are busy: its calls have threads of their own.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "core/base/done.h"
#include "distributed/replica/replica.h"
#include "distributed/rpc/call_threads.h"
#include "distributed/rpc/calls/channel.h"
#include "distributed/rpc/calls/completion_loop.h"
#include "distributed/task/task.h"
#include "proto/penstock/insight.grpc.pb.h"

namespace penstock {

class InsightService {
 public:
  struct Options {
    Task* task = nullptr;        // borrowed, as are the following
    Replica* replica = nullptr;  // null: the task has one process
    Env* env = nullptr;
    Channels* channels = nullptr;
    CompletionLoop* loop = nullptr;
  };
  static constexpr int64_t kTimeoutMs = 1'500;
  using ClusterAnswer = absl::AnyInvocable<void(wire::ClusterReport) &&>;

  // To be registered with the server.
  grpc::Service& service() { return service_; }
  // Begins to take calls, when the server runs. `queue` is the loop's.
  void Listen(const Options& options, grpc::ServerCompletionQueue& queue);
  // Asks every process of the cluster for its report. One that does not answer within `timeout_ms`
  // is in the answer with an error. `answer` is called once, on any thread. REQUIRES Listen.
  void AskCluster(int64_t timeout_ms, ClusterAnswer answer);
  // Returns what this task says of itself now. REQUIRES Listen.
  wire::TaskReport Report() const;
  // Returns when no call has a thread of its own any more.
  void WaitForCalls() { call_threads_.Wait(); }

 private:
  struct Question;
  void AskProcess(const std::shared_ptr<Question>& question, wire::ClusterTask* process, Done part);

  Options options_;
  wire::Insight::AsyncService service_;
  CallThreads call_threads_;
};

}  // namespace penstock
