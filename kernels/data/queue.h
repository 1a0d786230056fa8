// SPDX-License-Identifier: Apache-2.0
//
// Queue: a named buffer of tuples of tensors between steps that run at the same time: what input
// pipelines and token passing are made of.
//
// Enqueueing waits for room, dequeueing for elements. Taking many takes one at a time, as they
// come, so that more may be asked for than the queue holds; where it does not come to an end (the
// queue is closed, the step cancelled) they are put back. From a PriorityQueue many are taken at
// once, when all of them are there. Thread-safe; operations are served in order.
//
// Actions in a StateLog: "enqueue" {components of the elements, one element after the other};
// "take" {count}: so many leave for an operation that waits for more; "dequeue" {count}: so many
// leave for one that has come to its end, with what it took before; "put_back" {}: one ends without
// them; "close" {}. Which elements leave follows from the history.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "core/op/element_holder.h"
#include "core/op/state_replay.h"
#include "kernels/data/blocking.h"
#include "kernels/data/element_store.h"

namespace penstock {

// The elements of a queue. Nodes that share a queue have to agree on it.
struct QueueSpec {
  const char* type = "FIFOQueue";
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // of the components; empty: any
  int64_t capacity = -1;             // < 0: no limit
  int64_t min_after_dequeue = 0;     // how many stay behind while the queue is open
  int64_t seed = 0, seed2 = 0;
  // While the queue is open, elements are taken when it is full, and only then. So which of them
  // are drawn at random depends on their order and the seeds, not on how fast anybody is.
  bool repeatable = false;

  // Elements leave by priority: none of several leaves before all are there, because one that
  // comes later may have to be the first.
  bool by_priority() const { return string_view(type) == "PriorityQueue"; }
  // How many are not taken while the queue is open.
  int64_t stay() const { return repeatable ? capacity - 1 : min_after_dequeue; }
  // InvalidArgument names the first difference.
  Status CheckSame(const QueueSpec& wanted, string_view name) const;
};

class Queue final : public Blocking, public ElementHolder {
 public:
  using Receive = absl::AnyInvocable<Status(std::vector<Element>) &&>;

  // `seeds` are those of a store that draws at random: the spec's, or drawn if it has none.
  using Seeds = std::pair<uint64_t, uint64_t>;
  Queue(std::string name, QueueSpec spec, std::unique_ptr<ElementStore> store, Seeds seeds = {})
      : Blocking(spec.type, std::move(name), kNumLines),
        spec_(std::move(spec)),
        seeds_(seeds),
        store_(std::move(store)) {}
  // With the store that belongs to spec.type.
  static std::shared_ptr<Queue> Make(std::string name, QueueSpec spec, Seeds seeds);

  const QueueSpec& spec() const { return spec_; }
  std::string DebugString() const override ABSL_LOCKS_EXCLUDED(mu_);
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;
  void EndReplay(const UpdateOrigin& origin) override;

  // Puts `elements` in, one at a time as there is room. Cancelled once the queue is closed.
  void Enqueue(std::vector<Element> elements, const Caller& caller, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes `count` elements, or with `up_to` what is left of a queue that is closed, and hands them
  // to `receive`, whose status is the end's. OutOfRange if a closed queue has not enough.
  void Dequeue(int64_t count, bool up_to, Receive receive, const Caller& caller, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing enters any more. Waits for the enqueues that wait already, or cancels them. Cancelled
  // if it is closed already and nothing is to be cancelled.
  void Close(bool cancel_pending, const Caller& caller, Done done) ABSL_LOCKS_EXCLUDED(mu_);

  ElementCount element_count() const override ABSL_LOCKS_EXCLUDED(mu_);
  int64_t size() const ABSL_LOCKS_EXCLUDED(mu_);
  bool closed() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  enum Lines { kEnqueues, kDequeues, kNumLines };
  class EnqueueOperation;
  class DequeueOperation;
  class CloseOperation;

  static constexpr char kEnqueueAction[] = "enqueue", kTakeAction[] = "take",
                        kDequeueAction[] = "dequeue", kPutBackAction[] = "put_back",
                        kCloseAction[] = "close";
  // Every change of the state.
  void Put(absl::Span<Element> elements, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Appends `count` elements to `*taken`. `last`: their operation needs no more.
  void Take(int64_t count, bool last, std::vector<Element>* taken, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PutBack(std::vector<Element> taken, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MarkClosed(const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status ReplayPut(const ReplayValues& values, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const QueueSpec spec_;
  const Seeds seeds_;
  const std::unique_ptr<ElementStore> store_ ABSL_PT_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  // By an operation that has not come to its end.
  std::vector<Element> replayed_taken_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
