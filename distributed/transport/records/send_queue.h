// SPDX-License-Identifier: Apache-2.0
//
// SendQueue: holds what a sink cannot send over one connection yet: refusals, small tensors, and
// large tensors. Refusals are sent first, and small tensors overtake large ones. The sink itself
// sends the large ones.
//
// Not thread-safe: the sink's lock guards it. `Progress` is the sink's own state of each tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "distributed/transport/records/tensor_record_writer.h"
#include "distributed/transport/transport.h"

namespace penstock {

template <class Progress>
class SendQueue {
 public:
  using HandedOver = TensorSink::HandedOver;
  struct Item {
    OutgoingTensor tensor;
    HandedOver handed_over;  // empty after it was moved out
    Progress progress = {};
  };
  // Tensors that were sent or dropped. The sink passes them to End after releasing its lock.
  using Ended = std::vector<Item>;

  void Push(OutgoingTensor tensor, HandedOver handed_over) {
    std::deque<Item>& queue = tensor.bytes() <= kInlineBytesMax ? small_ : large_;
    queue.push_back({std::move(tensor), std::move(handed_over)});
  }
  void PushRefusal(int64_t step_id, const Status& why) { refusals_.push_back({step_id, why}); }
  std::deque<Item>& large() { return large_; }
  bool empty() const { return refusals_.empty() && small_.empty() && large_.empty(); }

  // Writes refusals, then small tensors, as long as there is room.
  Status SendSmall(TensorRecordWriter& writer, Ended* ended) {
    RETURN_IF_ERROR(SendRefusals(writer));
    while (!small_.empty()) {
      ASSIGN_OR_RETURN(const bool sent, writer.Write(small_.front().tensor, Place::kInline));
      if (!sent) break;
      ended->push_back(std::move(small_.front()));
      small_.pop_front();
    }
    return OkStatus();
  }
  Status SendRefusals(TensorRecordWriter& writer) {
    while (!refusals_.empty()) {
      const Refusal& next = refusals_.front();
      ASSIGN_OR_RETURN(const bool sent, writer.WriteRefusal(next.step_id, next.why));
      if (!sent) break;
      refusals_.pop_front();
    }
    return OkStatus();
  }
  // Returns true if this thread has to send the large tensors, and then to call EndLarge. Returns
  // false while another thread sends them, which may have released the sink's lock.
  bool BeginLarge() { return !std::exchange(sending_large_, true); }
  void EndLarge() { sending_large_ = false; }

  // Drops the tensors of a step.
  void Drop(int64_t step_id, Ended* ended) {
    for (std::deque<Item>* queue : {&small_, &large_}) {
      const auto kept = std::stable_partition(
          queue->begin(), queue->end(),
          [step_id](const Item& item) { return item.tensor.step_id() != step_id; });
      std::move(kept, queue->end(), std::back_inserter(*ended));
      queue->erase(kept, queue->end());
    }
  }
  void DropAll(Ended* ended) {
    for (std::deque<Item>* queue : {&small_, &large_}) {
      std::move(queue->begin(), queue->end(), std::back_inserter(*ended));
      queue->clear();
    }
    refusals_.clear();
  }

  // Frees the tensors, and calls each `handed_over` after its tensor was freed.
  static void End(Ended ended) {
    for (Item& item : ended) {
      HandedOver handed_over;
      {
        Item gone = std::move(item);
        handed_over = std::move(gone.handed_over);
      }
      if (handed_over) std::move(handed_over)();
    }
  }

 private:
  struct Refusal {
    int64_t step_id;
    Status why;
  };

  std::deque<Item> small_, large_;
  std::deque<Refusal> refusals_;
  bool sending_large_ = false;
};

}  // namespace penstock
