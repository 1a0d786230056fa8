// SPDX-License-Identifier: Apache-2.0
//
// ShmTransport: tensors move between tasks of one host through memory that both map. One
// connection per ordered pair of tasks: opened by the consumer when it is first needed, and again
// after it was lost.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/rpc/calls/grpc_host.h"
#include "distributed/transport/loop/loop.h"
#include "distributed/transport/shm/handshake.h"
#include "distributed/transport/shm/shm_stream.h"
#include "distributed/transport/transport.h"
#include "proto/penstock/shm.grpc.pb.h"

namespace penstock {

class ShmTransport final : public Transport {
 public:
  // Registers its service with the host's builder. `host` is borrowed. Destroy the transport when
  // the host's server and loop have been stopped.
  explicit ShmTransport(GrpcHost& host);
  ~ShmTransport() override;

  string_view protocol() const override { return "shm"; }
  TransportCapabilities capabilities() const override {
    return {.inline_bytes_max = kInlineBytesMax};
  }
  // REQUIRES that the host's server has been started. FailedPrecondition if this host does not let
  // tasks share memory.
  Status Serve(const TaskId& self, TaskSteps& steps) override;
  void Reach(const TaskId& producer, Reached reached) override;
  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override;
  void Stop() override;

 private:
  using Service = wire::SharedMemory::AsyncService;

  // Returns the stream to the producer; `*opened` if it is new, and Open must be called without
  // the lock.
  std::shared_ptr<ShmStream> StreamTo(const TaskId& producer, bool* opened)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Open(const std::shared_ptr<ShmStream>& stream);
  Status Join(const std::shared_ptr<ShmStream>& stream, const wire::MeetResponse& producer);
  Status AnswerMeet(const wire::MeetRequest& request, wire::MeetResponse* response) const;
  void Forget(const ShmStream* stream);

  GrpcHost& host_;
  Service service_;
  TaskId self_;  // from Serve on, as are the next
  TaskSteps* steps_ = nullptr;
  HostIdentity identity_;
  std::string socket_name_;
  TransportLoop loop_;
  Mutex mu_;  // locked before a stream's
  std::map<std::string, std::shared_ptr<ShmStream>> streams_ ABSL_GUARDED_BY(mu_);  // by task name
};

}  // namespace penstock
