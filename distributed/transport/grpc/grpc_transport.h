// SPDX-License-Identifier: Apache-2.0
//
// GrpcTransport: moves tensors on Exchange streams, over the same connections and port as a task's
// calls. There is one stream per producer: the consumer opens it when it first needs a tensor from
// the producer, and again after the stream was lost.
//
// Thread-safe like every Transport, once Serve has returned.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/calls/grpc_host.h"
#include "distributed/transport/grpc/exchange_sink.h"
#include "distributed/transport/transport.h"

namespace penstock {

class ExchangeStream;

class GrpcTransport final : public Transport {
 public:
  // Registers its service with the host's builder. `host` is borrowed. Destroy the transport
  // after the host's server and loop have been stopped.
  explicit GrpcTransport(GrpcHost& host);
  ~GrpcTransport() override;

  string_view protocol() const override { return "grpc"; }
  TransportCapabilities capabilities() const override {
    return {.inline_bytes_max = kSmallBytesMax};
  }
  // REQUIRES: the host's server has been started.
  Status Serve(const TaskId& self, TaskSteps& steps) override;
  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override;
  // Ends the streams to producers. The streams to consumers end with the host's server.
  void Stop() override;

 private:
  friend class ExchangeStream;
  void Forget(const ExchangeStream* stream);

  GrpcHost& host_;
  ExchangeService service_;
  TaskId self_;                 // set by Serve
  TaskSteps* steps_ = nullptr;  // set by Serve
  Mutex mu_;                    // locked before the mutex of a stream
  std::map<std::string, std::shared_ptr<ExchangeStream>> streams_
      ABSL_GUARDED_BY(mu_);  // by task name
};

}  // namespace penstock
