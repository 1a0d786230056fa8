// SPDX-License-Identifier: Apache-2.0
//
// VerbsSink: the producer's end of one connection. It takes the consumer's subscriptions and sends
// it tensors.
//
// If there is room, Send writes a small tensor into the ring at once, on the caller's thread. A
// large one is exposed (exposed_tensor.h) and offered. If the tensor was copied, it counts as
// handed over as soon as it is offered; if not, when the consumer confirms that it has read the
// bytes. One caller at a time exposes tensors, without the lock; other callers leave theirs in the
// queue for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/transport/records/send_queue.h"
#include "distributed/transport/records/tensor_record_writer.h"
#include "distributed/transport/transport.h"
#include "distributed/transport/verbs/exposed_tensor.h"
#include "distributed/transport/verbs/registered_memory.h"
#include "distributed/transport/verbs/verbs_end.h"

namespace penstock {

// The maximum number of bytes of large tensors that are offered and not yet read. If none is
// offered, a tensor of any size may be offered. Further tensors wait in the queue and are not
// copied.
inline constexpr uint64_t kOfferedBytesMax = uint64_t{32} << 20;

class VerbsSink final : public TensorSink,
                        public VerbsEnd,
                        public std::enable_shared_from_this<VerbsSink> {
 public:
  // `pair` is connected to the queue pair of the task `consumer`. `steps` is borrowed
  // until Close.
  VerbsSink(std::unique_ptr<QueuePair> pair, std::string consumer, TaskSteps& steps,
            std::shared_ptr<VerbsDevice> device, std::shared_ptr<RegisteredMemory> memory);
  ~VerbsSink() override { Close(); }

  // Implements TensorSink:
  void Refuse(int64_t step_id, const Status& why) override;
  void Drop(int64_t step_id) override;
  // Implements End:
  bool Advance() override;
  bool Tick(int64_t now_ns) override;
  void Close() override;

 private:
  using Queue = SendQueue<std::optional<ExposedTensor>>;
  using Item = Queue::Item;
  struct Offer {
    int64_t step_id;
    uint64_t bytes;
    ExposedTensor exposed;
    HandedOver handed_over;  // empty after it was called
  };
  // Objects to free or call after releasing the lock: tensors that were sent, offers that were
  // answered, and callbacks of offers that were not.
  struct Ended {
    Queue::Ended items;
    std::vector<Offer> offers;
    std::vector<HandedOver> calls;
  };

  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override;
  // Sends queued tensors as long as there is room. An error breaks the connection.
  void Pump(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status PumpOnce(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status SendLarge(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Exposes the tensor, without holding the lock.
  Status Expose(Item* item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes an offer into the ring. Returns false if there is no room.
  StatusOr<bool> WriteOffer(Item* item, Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status ReadCommands(std::vector<int64_t>* subscribed, Ended* ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool is_open() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return pair_ != nullptr && broken_.ok();
  }
  static void End(Ended ended);

  const std::string consumer_;
  TaskSteps& steps_;
  const std::shared_ptr<VerbsDevice> device_;
  const std::shared_ptr<RegisteredMemory> memory_;

  bool greeted_ ABSL_GUARDED_BY(mu_) = false;
  // writer_ and commands_ use the rings of pair_.
  std::optional<TensorRecordWriter> writer_ ABSL_GUARDED_BY(mu_);
  std::optional<RingReader> commands_ ABSL_GUARDED_BY(mu_);
  Queue queue_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Offer> offers_ ABSL_GUARDED_BY(mu_);  // by number
  uint64_t last_offer_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t offered_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
