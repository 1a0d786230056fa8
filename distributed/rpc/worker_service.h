// SPDX-License-Identifier: Apache-2.0
//
// WorkerService: the gRPC service that serves a task's Worker to other processes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "distributed/calls/completion_loop.h"
#include "distributed/calls/unary_call.h"
#include "distributed/rpc/graph_upload.h"
#include "distributed/rpc/run_graph_stream.h"
#include "distributed/rpc/step_calls.h"
#include "distributed/worker/worker.h"

namespace penstock {

class WorkerService {
 public:
  struct Options {
    Worker* worker = nullptr;  // this and the following are borrowed
    Scheduler* threads = nullptr;
    Env* env = nullptr;
    const Registry* registry = nullptr;
    GraphUploads* uploads = nullptr;
    StepCalls* calls = nullptr;  // null: steps come over gRPC only
    // Called, on any thread, when a call asks for the end of the process.
    std::function<void(const std::string& reason)> shutdown;
  };
  // Returns the service, to be registered with the server.
  grpc::Service& service() { return service_; }
  // Sets the objects that the service uses, and begins to take calls from `options.calls`. Call it
  // before the transport serves.
  void Use(Options options);
  // Begins to take calls. REQUIRES: the server runs. The loop polls `queue`.
  void Listen(CompletionLoop& loop, grpc::ServerCompletionQueue& queue);

 private:
  // InvalidArgument if the call names no incarnation, Aborted if it names another
  // incarnation than this task's.
  Status CheckIncarnation(uint64_t incarnation) const;
  // Aborted if the session is not known. Renews its lease.
  Status CheckSession(const std::string& handle) const;
  Status GetStatus(const wire::GetStatusRequest& request, wire::GetStatusResponse* response);
  Status CreateSession(const wire::CreateSessionRequest& request);
  Status DeleteSession(const wire::DeleteSessionRequest& request);
  // Adds the partition, a part of an upload, which this function changes. Returns the constants if
  // it was the last part, else null. Aborted if the session is not known; InvalidArgument if this
  // task does not have the device, or if a part without nodes is not alone in its request.
  StatusOr<std::unique_ptr<ConstantPieces>> AddPart(const wire::RegisterGraphRequest& request,
                                                    wire::Partition* partition);
  // Parses and clears `bytes`, a RegisterGraphRequest. If a partition of it is a part of an upload,
  // registers the graph only when all partitions are complete.
  Status RegisterGraph(grpc::ByteBuffer* bytes);
  Status DeregisterGraph(const wire::DeregisterGraphRequest& request);
  Status AbortStep(const wire::AbortStepRequest& request);
  Status Reset(const wire::ResetRequest& request);
  Status CheckShutdown(const wire::ShutdownRequest& request) const;
  void RunGraph(const wire::RunGraphRequest& request, RunGraphSink::Answer answer);
  void Abort(int64_t step_id);
  void ConnectToMaster(const wire::RunGraphRequest& request);

  Options options_;
  WorkerGrpcService service_;
};

}  // namespace penstock
