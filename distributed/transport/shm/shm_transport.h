// SPDX-License-Identifier: Apache-2.0
//
// ShmTransport: moves tensors between tasks of one host through memory that both map. There is
// one connection per ordered pair of tasks: the consumer opens it when it first needs a tensor from
// the producer, and again after the connection was lost.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "distributed/calls/grpc_host.h"
#include "distributed/transport/loop/loop.h"
#include "distributed/transport/records/stream_table.h"
#include "distributed/transport/shm/handshake.h"
#include "distributed/transport/shm/shm_stream.h"
#include "distributed/transport/transport.h"
#include "proto/penstock/shm.grpc.pb.h"

namespace penstock {

class ShmTransport final : public Transport {
 public:
  // Registers its service with the host's builder. `host` is borrowed. Destroy the transport
  // after the host's server and loop have been stopped.
  explicit ShmTransport(GrpcHost& host);
  ~ShmTransport() override;

  string_view protocol() const override { return "shm"; }
  TransportCapabilities capabilities() const override {
    return {.inline_bytes_max = kInlineBytesMax};
  }
  // REQUIRES: the host's server has been started. FailedPrecondition if this host does not let
  // tasks share memory.
  Status Serve(const TaskId& self, TaskSteps& steps) override;
  void Reach(const TaskId& producer, Reached reached) override {
    streams_.Reach(producer, std::move(reached));
  }
  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override {
    streams_.Unsubscribe(producer, step_id);
  }
  Poller* poller() override { return &loop_; }
  void Stop() override;

 private:
  using Service = wire::SharedMemory::AsyncService;

  void Open(const std::shared_ptr<ShmStream>& stream);
  Status Join(const std::shared_ptr<ShmStream>& stream, const wire::MeetResponse& producer);
  Status AnswerMeet(const wire::MeetRequest& request, wire::MeetResponse* response) const;

  GrpcHost& host_;
  Service service_;
  TaskId self_;  // this and the following are set by Serve
  TaskSteps* steps_ = nullptr;
  HostIdentity identity_;
  std::string socket_name_;
  TransportLoop loop_;
  StreamTable<ShmStream> streams_;
};

}  // namespace penstock
