// SPDX-License-Identifier: Apache-2.0
//
// Queue: a named buffer of tuples of tensors between steps that run at the same time. Input
// pipelines and token passing use it.
//
// Enqueue waits for room, Dequeue for elements. Dequeue takes elements one at a time as they
// arrive, so that a step may ask for more elements than the queue holds. If it cannot complete (the
// queue is closed, or the step cancelled) it puts them back. A PriorityQueue differs: Dequeue waits
// until all elements are there and takes them at once. Thread-safe; operations are served in order.
//
// Actions in a StateLog: "enqueue" {components of the elements, one element after the other};
// "take" {count}: this many elements leave for an operation that waits for more; "dequeue" {count}:
// this many leave for an operation that is complete with them; "put_back" {}: an operation ends and
// puts its elements back; "close" {}. The earlier records determine which elements leave.
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

// The properties of a queue. Nodes that share a queue must agree on them.
struct QueueSpec {
  const char* type = "FIFOQueue";
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // shapes of the components; empty: any
  int64_t capacity = -1;             // < 0: no limit
  // Minimum number of elements that stay in the queue while it is open.
  int64_t min_after_dequeue = 0;
  int64_t seed = 0, seed2 = 0;
  // While the queue is open, elements are taken only when it is full. So the elements drawn at
  // random depend on their order and the seeds, not on timing.
  bool repeatable = false;

  // Returns true if elements leave in the order of their priorities. Dequeue then waits until the
  // queue has all elements that it needs, because an element that is added later may have to leave
  // first.
  bool by_priority() const { return string_view(type) == "PriorityQueue"; }
  // Returns the number of elements that must remain in the queue while it is open.
  int64_t stay() const { return repeatable ? capacity - 1 : min_after_dequeue; }
  // Checks that the specs agree. InvalidArgument names the first difference.
  Status CheckSame(const QueueSpec& wanted, string_view name) const;
};

class Queue final : public Blocking, public ElementHolder {
 public:
  using Receive = absl::AnyInvocable<Status(std::vector<Element>) &&>;

  // The seeds of a store that draws at random: those of the spec, or random numbers if the spec has
  // none.
  using Seeds = std::pair<uint64_t, uint64_t>;
  Queue(std::string name, QueueSpec spec, std::unique_ptr<ElementStore> store, Seeds seeds = {})
      : Blocking(spec.type, std::move(name), kNumLines),
        spec_(std::move(spec)),
        seeds_(seeds),
        store_(std::move(store)) {}
  // Makes a queue with the store for spec.type.
  static std::shared_ptr<Queue> Make(std::string name, QueueSpec spec, Seeds seeds);

  const QueueSpec& spec() const { return spec_; }
  std::string DebugString() const override ABSL_LOCKS_EXCLUDED(mu_);
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;
  void EndReplay(const UpdateOrigin& origin) override;

  // Adds `elements`, one at a time as there is room. Cancelled once the queue is closed.
  void Enqueue(std::vector<Element> elements, const Caller& caller, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes `count` elements and passes them to `receive`, whose status the operation returns. With
  // `up_to`, takes fewer if the queue is closed and has fewer. OutOfRange if the queue is closed
  // and has too few elements.
  void Dequeue(int64_t count, bool up_to, Receive receive, const Caller& caller, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Closes the queue to new elements. Waits for the enqueues that are already waiting or, if
  // `cancel_pending`, cancels them. Cancelled if the queue is already closed and `cancel_pending`
  // is false.
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
  // All changes of the state go through these functions, both in operations and in replay of a log.
  void Put(absl::Span<Element> elements, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Appends `count` elements to `*taken`. `last`: the operation is complete with them.
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
  // The elements taken so far by a replayed operation that has not ended.
  std::vector<Element> replayed_taken_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
