// SPDX-License-Identifier: Apache-2.0
//
// VerbsSink: the producer's end of one connection: takes the consumer's subscriptions and sends it
// tensors.
//
// Send writes a small tensor into the ring at once, on the caller's thread, where there is room. A
// large one is exposed (exposed_tensor.h) and offered; the consumer reads it, says so, and then it
// is handed over. One caller at a time exposes tensors, without the lock; others leave theirs in
// the queue for it.
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

// Large tensors that were offered and not read yet: at most so many bytes, or one tensor. What goes
// beyond waits as a reference.
inline constexpr uint64_t kOfferedBytesMax = uint64_t{32} << 20;

class VerbsSink final : public TensorSink,
                        public VerbsEnd,
                        public std::enable_shared_from_this<VerbsSink> {
 public:
  // `pair` is connected to that of the task `consumer`. `steps` is borrowed until Close.
  VerbsSink(std::unique_ptr<QueuePair> pair, std::string consumer, TaskSteps& steps,
            std::shared_ptr<VerbsDevice> device, std::shared_ptr<RegisteredMemory> memory);
  ~VerbsSink() override { Close(); }

  // TensorSink.
  void Refuse(int64_t step_id, const Status& why) override;
  void Drop(int64_t step_id) override;
  // End.
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
    HandedOver handed_over;  // empty once it was called
  };
  // Work for the time after the lock has been released: tensors that have left, offers that were
  // answered, and callbacks of offers that were not.
  struct Ended {
    Queue::Ended items;
    std::vector<Offer> offers;
    std::vector<HandedOver> calls;
  };

  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override;
  // Sends what there is room for. An error breaks the connection.
  void Pump(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status PumpOnce(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status SendLarge(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Exposes the tensor, for which it releases the lock.
  Status Expose(Item* item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns false if there is no room in the ring.
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
  std::optional<TensorRecordWriter> writer_ ABSL_GUARDED_BY(mu_);  // of the pair, as is the next
  std::optional<RingReader> commands_ ABSL_GUARDED_BY(mu_);
  Queue queue_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Offer> offers_ ABSL_GUARDED_BY(mu_);  // by number
  uint64_t last_offer_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t offered_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
