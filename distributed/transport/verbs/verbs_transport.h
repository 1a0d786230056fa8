// SPDX-License-Identifier: Apache-2.0
//
// VerbsTransport: moves tensors between tasks over RDMA (libibverbs).
//
// There is one connection per ordered pair of tasks: the consumer opens it when it first needs a
// tensor from the producer, and again after the connection was lost. The two ends exchange their
// endpoints over gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/calls/grpc_host.h"
#include "distributed/transport/loop/loop.h"
#include "distributed/transport/records/stream_table.h"
#include "distributed/transport/records/tensor_record.h"
#include "distributed/transport/transport.h"
#include "distributed/transport/verbs/device.h"
#include "distributed/transport/verbs/registered_memory.h"
#include "distributed/transport/verbs/settings.h"
#include "distributed/transport/verbs/verbs_stream.h"
#include "proto/penstock/verbs.grpc.pb.h"

namespace penstock {

class VerbsTransport final : public Transport {
 public:
  using Log = std::function<void(const std::string& line)>;

  // Registers its service with the host's builder. `host` is borrowed. Destroy the transport
  // after the host's server and loop have been stopped.
  VerbsTransport(GrpcHost& host, const VerbsSettings& settings, Log log);
  ~VerbsTransport() override;

  string_view protocol() const override { return "verbs"; }
  TransportCapabilities capabilities() const override {
    return {.inline_bytes_max = kInlineBytesMax};
  }
  // REQUIRES: the host's server has been started. FailedPrecondition or ResourceExhausted says in
  // one line why this task cannot use RDMA, and what to do.
  Status Serve(const TaskId& self, TaskSteps& steps) override;
  void Reach(const TaskId& producer, Reached reached) override {
    streams_.Reach(producer, std::move(reached));
  }
  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override {
    streams_.Unsubscribe(producer, step_id);
  }
  void Stop() override;

 private:
  using Service = wire::Verbs::AsyncService;

  Status OpenDevice();
  StatusOr<std::shared_ptr<VerbsStream>> MakeStream(const TaskId& producer);
  void Open(const std::shared_ptr<VerbsStream>& stream);
  Status Join(const std::shared_ptr<VerbsStream>& stream, const wire::VerbsConnectResponse& answer);
  Status AnswerConnect(const wire::VerbsConnectRequest& request,
                       wire::VerbsConnectResponse* response);
  // Adds an end to the loop. Returns false, and does nothing, once this task stops.
  bool Add(std::shared_ptr<VerbsEnd> end);
  // Calls KeepAlive of all ends once a second, until Stop.
  void KeepAlive();

  GrpcHost& host_;
  const VerbsSettings settings_;
  const Log log_;
  Service service_;
  TaskId self_;  // this and the following are set by Serve
  TaskSteps* steps_ = nullptr;
  Status serve_status_;
  std::shared_ptr<VerbsDevice> device_;
  std::shared_ptr<RegisteredMemory> memory_;
  TransportLoop loop_;
  Condition stopping_changed_{Scheduler::Real(), "its connections over RDMA to be kept alive"};
  Mutex ends_mu_;
  bool stopping_ ABSL_GUARDED_BY(ends_mu_) = false;
  std::vector<std::weak_ptr<VerbsEnd>> ends_ ABSL_GUARDED_BY(ends_mu_);
  std::unique_ptr<Thread> keep_alive_;
  StreamTable<VerbsStream> streams_;
};

}  // namespace penstock
