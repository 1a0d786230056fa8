// SPDX-License-Identifier: Apache-2.0
//
// VerbsStream: the consumer's end of one connection. It subscribes to steps, reads offered large
// tensors, and delivers the tensors that arrive.
//
// A stream takes subscriptions before it is connected, and sends them to the producer once it is
// connected.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/mutex.h"
#include "distributed/transport/records/subscriptions.h"
#include "distributed/transport/transport.h"
#include "distributed/transport/verbs/offer_reader.h"
#include "distributed/transport/verbs/registered_memory.h"
#include "distributed/transport/verbs/verbs_end.h"

namespace penstock {

// The maximum number of bytes of tensors that are being read at once. If no tensor is being read, a
// read of a tensor of any size may begin.
inline constexpr uint64_t kReadingBytesMax = uint64_t{32} << 20;
// The time within which the producer has to answer over RDMA.
inline constexpr int64_t kFirstMessageNanosMax = 5'000'000'000;

class VerbsStream final : public VerbsEnd, public std::enable_shared_from_this<VerbsStream> {
 public:
  // Called when the stream is lost, without locks.
  using Lost = std::function<void(const VerbsStream*)>;

  // `steps` is borrowed until Close.
  VerbsStream(std::unique_ptr<QueuePair> pair, const TaskId& producer, TaskSteps& steps,
              std::shared_ptr<RegisteredMemory> memory, Lost lost);
  ~VerbsStream() override;

  const TaskId& producer() const { return producer_; }
  // Returns the description of this end for the producer; an empty one if the stream is lost.
  VerbsEndpoint endpoint();
  // Connects to the producer's end. After that the stream belongs to a loop.
  Status Connect(const VerbsEndpoint& other, int64_t now_ns);
  // Calls `opened` once: when the producer has answered over RDMA, or with the error.
  void WhenOpen(Transport::Reached opened);
  // Subscribes to a step. Returns false if the stream is lost.
  bool Subscribe(int64_t step_id);
  void Unsubscribe(int64_t step_id);
  // Ends the stream and fails its steps. `why` is FailedPrecondition if the tasks cannot use RDMA
  // with each other. Called on the loop's thread, or before the stream belongs to a loop.
  void MarkLost(const Status& why);

  // Implements End:
  bool Advance() override;
  bool Tick(int64_t now_ns) override;
  void Close() override;

 private:
  // A large tensor that is being read.
  struct Reading {
    TensorOffer offer;
    IncomingTensor tensor;
    Tensor bounce;  // receives bytes that the tensor cannot take directly; else not valid
    char* to;
    uint32_t local_key;
    uint64_t begun = 0, ended = 0;  // bytes
  };
  class InRegistered;

  bool Wants(int64_t step_id);
  void MarkOpen();
  // Processes the records in the ring. Returns whether there were any records.
  StatusOr<bool> ReadMessages();
  // Starts reading offered tensors, as long as the queue pair accepts reads.
  Status StartReads();
  // Allocates memory for the next offer that a step wants. Returns false if there is no such offer,
  // or if enough bytes are being read already.
  StatusOr<bool> BeginReading();
  StatusOr<Reading> MakeReading(TensorOffer offer);
  void EndReads(int count);
  void Finish(Reading reading);
  void FailReceiving(const TensorOffer& offer, const Status& why);
  void SendCommand(const Command& command) ABSL_LOCKS_EXCLUDED(mu_);
  Status FlushCommands() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TaskId producer_;
  TaskSteps& steps_;
  const std::shared_ptr<RegisteredMemory> memory_;
  const Lost when_lost_;
  // Used by the loop's thread only.
  std::optional<OfferReader> reader_;  // reads the ring of pair_
  std::deque<TensorOffer> offers_;     // offers whose reading has not begun
  std::deque<Reading> readings_;
  uint64_t reading_bytes_ = 0;
  int64_t connected_ns_ = 0;
  bool open_ = false;

  std::optional<RingWriter> commands_ ABSL_GUARDED_BY(mu_);  // writes the ring of pair_
  Subscriptions subscriptions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
