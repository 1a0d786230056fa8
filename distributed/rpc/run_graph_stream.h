// SPDX-License-Identifier: Apache-2.0
//
// RunGraphStream: the master's end of a stream to one worker, on which it sends RunGraph requests
// and receives the answers. RunGraphSink: the worker's end.
//
// A message on a stream costs much less than a call. Requests that are made while a message is
// being written share the next message. Thread-safe. Held by shared pointers: pending operations
// keep them alive.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/functional/any_invocable.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/calls/completion_loop.h"
#include "proto/penstock/worker.grpc.pb.h"

namespace penstock {

// Graphs are received as bytes.
using WorkerGrpcService = wire::Worker::WithRawMethod_RegisterGraph<wire::Worker::AsyncService>;

class RunGraphStream final : public Operation, public std::enable_shared_from_this<RunGraphStream> {
 public:
  using Ended = absl::AnyInvocable<void(const Status&, wire::RunGraphResponse&) &&>;

  // `task`: the name that errors use.
  RunGraphStream(std::shared_ptr<wire::Worker::Stub> stub, CompletionLoop& loop, std::string task)
      : stub_(std::move(stub)), loop_(loop), task_(std::move(task)) {}

  // Opens the stream. The owner calls this once, before or after the first Run.
  void Open();
  // Sends a request. `ended` is called once: with the answer, or with an error when the stream is
  // lost or the step abandoned. If the stream is lost already, returns false and does not take
  // `ended`.
  [[nodiscard]] bool Run(wire::RunGraphRequest request, Ended* ended);
  // Ends the wait for a step with Cancelled.
  void Abandon(int64_t step_id);
  void Cancel() override { context_.TryCancel(); }

 private:
  void Started(bool ok);
  void Read(bool ok);
  void Written(bool ok);
  void Finished(bool ok);
  void Finish() { stream_->Finish(&status_, finished_.TagFor(shared_from_this())); }
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MarkLost(const Status& why);

  const std::shared_ptr<wire::Worker::Stub> stub_;
  CompletionLoop& loop_;
  const std::string task_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<wire::RunGraphRequests, wire::RunGraphResponses>>
      stream_;
  EventOf<RunGraphStream> started_{&RunGraphStream::Started};
  EventOf<RunGraphStream> read_{&RunGraphStream::Read};
  EventOf<RunGraphStream> written_{&RunGraphStream::Written};
  EventOf<RunGraphStream> finished_{&RunGraphStream::Finished};
  wire::RunGraphResponses incoming_;
  grpc::Status status_;

  Mutex mu_;
  std::map<int64_t, Ended> running_ ABSL_GUARDED_BY(mu_);  // by step
  wire::RunGraphRequests pending_ ABSL_GUARDED_BY(mu_);    // not yet written
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
};

class RunGraphSink final : public Operation, public std::enable_shared_from_this<RunGraphSink> {
 public:
  using Answer = std::function<void(wire::RunGraphResponse)>;
  struct Endpoint {
    WorkerGrpcService* service;
    CompletionLoop* loop;
    grpc::ServerCompletionQueue* queue;  // the loop's queue
    // Begins a step, and calls `Answer` when it ends. The answer may lack the step's id.
    std::function<void(const wire::RunGraphRequest&, Answer)> run;
    // Aborts a step that runs when the master has died, or the connection to it is lost.
    std::function<void(int64_t step_id)> abort;
  };
  // Accepts one stream; when it arrives, accepts the next one, until the server shuts down.
  static void Listen(std::shared_ptr<const Endpoint> endpoint);

  explicit RunGraphSink(std::shared_ptr<const Endpoint> endpoint)
      : endpoint_(std::move(endpoint)), stream_(&context_) {}
  void Cancel() override { context_.TryCancel(); }

 private:
  void Received(bool ok);
  void Read(bool ok);
  void Written(bool ok);
  void Finished(bool) { endpoint_->loop->End(this); }
  void Start(const wire::RunGraphRequest& request);
  void Ended(wire::RunGraphResponse response);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Close(const Status& status);
  void FinishStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<const Endpoint> endpoint_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<wire::RunGraphResponses, wire::RunGraphRequests> stream_;
  EventOf<RunGraphSink> received_{&RunGraphSink::Received};
  EventOf<RunGraphSink> read_{&RunGraphSink::Read};
  EventOf<RunGraphSink> written_{&RunGraphSink::Written};
  EventOf<RunGraphSink> finished_{&RunGraphSink::Finished};
  wire::RunGraphRequests incoming_;

  Mutex mu_;
  std::set<int64_t> running_ ABSL_GUARDED_BY(mu_);
  wire::RunGraphResponses pending_ ABSL_GUARDED_BY(mu_);  // not yet written
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  Status close_status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
