// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

std::string TypesText(const std::vector<DType>& types) {
  return StrCat("(", absl::StrJoin(types, ", ", [](std::string* s, DType t) { *s += Name(t); }),
                ")");
}

std::string ShapesText(const std::vector<PartialShape>& shapes) {
  const auto append = [](std::string* s, const PartialShape& shape) { *s += shape.ToString(); };
  return StrCat("(", absl::StrJoin(shapes, ", ", append), ")");
}

template <class T>
Status Differs(string_view name, const char* what, const T& is, const T& wanted) {
  return InvalidArgument("queue '", name, "' exists already, with ", what, " ", is,
                         " where this node says ", wanted);
}

}  // namespace

Status QueueSpec::CheckSame(const QueueSpec& wanted, string_view name) const {
  if (capacity != wanted.capacity && std::max(capacity, wanted.capacity) >= 0) {
    return Differs(name, "capacity", capacity, wanted.capacity);
  }
  if (types != wanted.types) {
    return Differs(name, "component types", TypesText(types), TypesText(wanted.types));
  }
  if (shapes != wanted.shapes) {
    return Differs(name, "component shapes", ShapesText(shapes), ShapesText(wanted.shapes));
  }
  if (min_after_dequeue != wanted.min_after_dequeue) {
    return Differs(name, "min_after_dequeue", min_after_dequeue, wanted.min_after_dequeue);
  }
  if (repeatable != wanted.repeatable) {
    return Differs(name, kRepeatableAttr, repeatable, wanted.repeatable);
  }
  // A node without seeds accepts a queue with any seeds.
  if ((wanted.seed != 0 || wanted.seed2 != 0) && (seed != wanted.seed || seed2 != wanted.seed2)) {
    return Differs(name, "seeds", StrCat("(", seed, ", ", seed2, ")"),
                   StrCat("(", wanted.seed, ", ", wanted.seed2, ")"));
  }
  return OkStatus();
}

class Queue::EnqueueOperation final : public Operation {
 public:
  EnqueueOperation(Queue& queue, std::vector<Element> elements, const Caller& caller, Done done)
      : Operation(caller, std::move(done)), queue_(queue), elements_(std::move(elements)) {}

  StatusOr<Progress> Try() override {
    queue_.mu_.AssertHeld();
    if (queue_.closed_) return Cancelled(queue_.TypeName(), " '", queue_.name(), "' is closed.");
    const int64_t capacity = queue_.spec_.capacity;
    const int64_t left = static_cast<int64_t>(elements_.size()) - next_;
    const int64_t count =
        capacity < 0 ? left : std::clamp<int64_t>(capacity - queue_.store_->size(), 0, left);
    if (count == 0) return Progress::kNone;
    queue_.Put(absl::MakeSpan(elements_).subspan(next_, count), origin());
    next_ += count;
    return count == left ? Progress::kDone : Progress::kSome;
  }

 private:
  Queue& queue_;
  std::vector<Element> elements_;
  int64_t next_ = 0;
};

class Queue::DequeueOperation final : public Operation {
 public:
  DequeueOperation(Queue& queue, int64_t count, bool up_to, Receive receive, const Caller& caller,
                   Done done)
      : Operation(caller, std::move(done)),
        queue_(queue),
        count_(count),
        up_to_(up_to),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    queue_.mu_.AssertHeld();
    const bool closed = queue_.closed_;
    const int64_t size = queue_.store_->size();
    const int64_t there = size + taken();
    if (closed && there < count_) {
      if (!up_to_ || there == 0) return EndOfInput(there);
      count_ = there;
    }
    const int64_t stay = closed ? 0 : queue_.spec_.stay();
    const int64_t missing = count_ - taken();
    const int64_t count = std::clamp<int64_t>(size - stay, 0, missing);
    if (count == 0 && missing > 0) return Progress::kNone;
    if (queue_.spec_.by_priority() && count < missing) return Progress::kNone;
    queue_.Take(count, /*last=*/count == missing, &elements_, origin());
    return count == missing ? Progress::kDone : Progress::kSome;
  }
  void Undo() override {
    queue_.mu_.AssertHeld();
    if (!elements_.empty()) queue_.PutBack(std::move(elements_), origin());
  }
  Status Deliver() override { return std::move(receive_)(std::move(elements_)); }

 private:
  int64_t taken() const { return static_cast<int64_t>(elements_.size()); }
  Status EndOfInput(int64_t there) const {
    return OutOfRange(queue_.TypeName(), " '", queue_.name(),
                      "' is closed and has insufficient elements (requested ", count_,
                      ", current size ", there, ")");
  }

  Queue& queue_;
  int64_t count_;
  const bool up_to_;
  Receive receive_;
  std::vector<Element> elements_;
};

// A Close waits in the same line as the enqueues, so that the enqueues before it complete first.
class Queue::CloseOperation final : public Operation {
 public:
  CloseOperation(Queue& queue, const Caller& caller, Done done)
      : Operation(caller, std::move(done)), queue_(queue) {}
  StatusOr<Progress> Try() override {
    queue_.mu_.AssertHeld();
    if (queue_.closed_) return Cancelled("Queue '", queue_.name(), "' is already closed.");
    queue_.MarkClosed(origin());
    return Progress::kDone;
  }

 private:
  Queue& queue_;
};

void Queue::Put(absl::Span<Element> elements, const UpdateOrigin& origin) {
  std::vector<Tensor> values;
  if (logged()) {
    for (const Element& element : elements) {
      values.insert(values.end(), element.begin(), element.end());
    }
  }
  for (Element& element : elements) store_->Put(std::move(element));
  Changed(origin, kEnqueueAction, [&] { return std::move(values); });
}

void Queue::Take(int64_t count, bool last, std::vector<Element>* taken,
                 const UpdateOrigin& origin) {
  for (int64_t i = 0; i < count; ++i) taken->push_back(store_->Take());
  Changed(origin, last ? kDequeueAction : kTakeAction,
          [&] { return std::vector<Tensor>{Value(count)}; });
}

void Queue::PutBack(std::vector<Element> taken, const UpdateOrigin& origin) {
  store_->PutBack(std::move(taken));
  Changed(origin, kPutBackAction, [] { return std::vector<Tensor>(); });
}

void Queue::MarkClosed(const UpdateOrigin& origin) {
  if (std::exchange(closed_, true)) return;
  Changed(origin, kCloseAction, [] { return std::vector<Tensor>(); });
}

void Queue::Enqueue(std::vector<Element> elements, const Caller& caller, Done done) {
  if (elements.empty()) return std::move(done)(OkStatus());
  Start(kEnqueues,
        std::make_shared<EnqueueOperation>(*this, std::move(elements), caller, std::move(done)));
}

void Queue::Dequeue(int64_t count, bool up_to, Receive receive, const Caller& caller, Done done) {
  if (count == 0) return std::move(done)(std::move(receive)({}));
  Start(kDequeues, std::make_shared<DequeueOperation>(*this, count, up_to, std::move(receive),
                                                      caller, std::move(done)));
}

void Queue::Close(bool cancel_pending, const Caller& caller, Done done) {
  if (!cancel_pending) {
    return Start(kEnqueues, std::make_shared<CloseOperation>(*this, caller, std::move(done)));
  }
  Ended ended;
  {
    MutexLock lock(mu_);
    MarkClosed(caller.origin);
    EndAll(kEnqueues, Cancelled("Enqueue operation was cancelled"), &ended);
    Advance(&ended);
  }
  Finish(ended);
  std::move(done)(OkStatus());
}

ElementCount Queue::element_count() const {
  MutexLock lock(mu_);
  return {.size = store_->size(),
          .capacity = spec_.capacity,
          .closed = closed_,
          .waiting_puts = static_cast<int64_t>(line(kEnqueues).size()),
          .waiting_takes = static_cast<int64_t>(line(kDequeues).size())};
}

int64_t Queue::size() const {
  MutexLock lock(mu_);
  return store_->size();
}

bool Queue::closed() const {
  MutexLock lock(mu_);
  return closed_;
}

std::string Queue::DebugString() const {
  MutexLock lock(mu_);
  return StrCat(TypeName(), " '", name(), "' of ", TypesText(spec_.types), ", ", store_->size(),
                " elements", closed_ ? ", closed" : "", ", ", line(kEnqueues).size(),
                " enqueues and ", line(kDequeues).size(), " dequeues wait");
}

}  // namespace penstock
