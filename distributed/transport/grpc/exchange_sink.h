// SPDX-License-Identifier: Apache-2.0
//
// ExchangeSink: the producer's end of one Exchange stream. It takes the consumer's subscriptions
// and sends it tensors.
//
// While gRPC writes a frame, further tensors wait for the next frame. So the number of messages
// depends on the time that a write takes, and not on the number of small tensors. Large tensors
// are cut into frames, and small ones overtake them.
//
// Thread-safe: steps send on any thread, and the stream's events come on the loop's threads. There
// is at most one read at a time, so `incoming_` and `consumer_`, which only Read uses, need no
// lock.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/transport/grpc/exchange_frame.h"
#include "distributed/transport/transport.h"
#include "proto/penstock/exchange.grpc.pb.h"

namespace penstock {

// Messages are sent and received as bytes, so that frames are written and read without
// protobuf's copies.
using ExchangeService =
    wire::TensorExchange::WithRawMethod_Exchange<wire::TensorExchange::AsyncService>;

// Tensors up to this size overtake larger ones.
inline constexpr size_t kSmallBytesMax = size_t{64} << 10;

class ExchangeSink final : public TensorSink,
                           public Operation,
                           public std::enable_shared_from_this<ExchangeSink> {
 public:
  struct Endpoint {
    ExchangeService* service;
    CompletionLoop* loop;
    grpc::ServerCompletionQueue* queue;  // the loop's queue
    TaskSteps* steps;
    TaskId self;
  };
  // Accepts one stream; when it arrives, accepts the next one, until the server shuts down.
  static void Listen(std::shared_ptr<const Endpoint> endpoint);

  explicit ExchangeSink(std::shared_ptr<const Endpoint> endpoint);

  void Refuse(int64_t step_id, const Status& why) override;
  void Drop(int64_t step_id) override;
  void Cancel() override { context_.TryCancel(); }

 private:
  struct Item {
    OutgoingTensor tensor;
    HandedOver handed_over;
    size_t sent = 0;  // bytes of the tensor that were sent
  };
  using Ended = std::vector<HandedOver>;  // call after releasing the lock

  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override;
  void Received(bool ok);
  void Read(bool ok);
  void Written(bool ok);
  void Finished(bool ok);
  Status HandleRequest(const grpc::ByteBuffer& message);
  void Close(const Status& status);
  void WriteFrame(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Call(Ended ended);

  const std::shared_ptr<const Endpoint> endpoint_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_;
  EventOf<ExchangeSink> received_{&ExchangeSink::Received};
  EventOf<ExchangeSink> read_{&ExchangeSink::Read};
  EventOf<ExchangeSink> written_{&ExchangeSink::Written};
  EventOf<ExchangeSink> finished_{&ExchangeSink::Finished};
  grpc::ByteBuffer incoming_;
  std::string consumer_;  // the consumer's task; "" until its first message has arrived

  Mutex mu_;
  FrameWriter frame_ ABSL_GUARDED_BY(mu_);
  std::deque<Item> small_ ABSL_GUARDED_BY(mu_);
  std::deque<Item> large_ ABSL_GUARDED_BY(mu_);
  bool refusals_ ABSL_GUARDED_BY(mu_) = false;  // whether frame_ contains refusals
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  Status close_status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
