// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"

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
    return Differs(name, "_repeatable", repeatable, wanted.repeatable);
  }
  // Without seeds any order will do.
  if ((wanted.seed != 0 || wanted.seed2 != 0) && (seed != wanted.seed || seed2 != wanted.seed2)) {
    return Differs(name, "seeds", StrCat("(", seed, ", ", seed2, ")"),
                   StrCat("(", wanted.seed, ", ", wanted.seed2, ")"));
  }
  return OkStatus();
}

class Queue::EnqueueOperation final : public Operation {
 public:
  EnqueueOperation(Queue& queue, std::vector<Element> elements, Cancellation* cancellation,
                   Done done)
      : Operation(cancellation, std::move(done)), queue_(queue), elements_(std::move(elements)) {}

  StatusOr<Progress> Try() override {
    queue_.mu_.AssertHeld();
    if (queue_.closed_) return Cancelled(queue_.TypeName(), " '", queue_.name(), "' is closed.");
    ElementStore& store = *queue_.store_;
    const int64_t capacity = queue_.spec_.capacity;
    const size_t before = next_;
    while (next_ < elements_.size() && (capacity < 0 || store.size() < capacity)) {
      store.Put(std::move(elements_[next_++]));
    }
    if (next_ == elements_.size()) return Progress::kDone;
    return next_ == before ? Progress::kNone : Progress::kSome;
  }

 private:
  Queue& queue_;
  std::vector<Element> elements_;
  size_t next_ = 0;
};

class Queue::DequeueOperation final : public Operation {
 public:
  DequeueOperation(Queue& queue, int64_t count, bool up_to, Receive receive,
                   Cancellation* cancellation, Done done)
      : Operation(cancellation, std::move(done)),
        queue_(queue),
        count_(count),
        up_to_(up_to),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    queue_.mu_.AssertHeld();
    ElementStore& store = *queue_.store_;
    const bool closed = queue_.closed_;
    const int64_t there = store.size() + taken();
    if (closed && there < count_) {
      if (!up_to_ || there == 0) return EndOfInput(there);
      count_ = there;
    }
    const size_t before = elements_.size();
    const int64_t stay = closed ? 0 : queue_.spec_.stay();
    while (taken() < count_ && store.size() > stay) elements_.push_back(store.Take());
    if (taken() == count_) return Progress::kDone;
    return elements_.size() == before ? Progress::kNone : Progress::kSome;
  }
  void Undo() override {
    queue_.mu_.AssertHeld();
    queue_.store_->PutBack(std::move(elements_));
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

// Stands in the line of the enqueues, so that those that wait come before it.
class Queue::CloseOperation final : public Operation {
 public:
  CloseOperation(Queue& queue, Cancellation* cancellation, Done done)
      : Operation(cancellation, std::move(done)), queue_(queue) {}
  StatusOr<Progress> Try() override {
    queue_.mu_.AssertHeld();
    if (queue_.closed_) return Cancelled("Queue '", queue_.name(), "' is already closed.");
    queue_.closed_ = true;
    return Progress::kDone;
  }

 private:
  Queue& queue_;
};

void Queue::Enqueue(std::vector<Element> elements, Cancellation* cancellation, Done done) {
  if (elements.empty()) return std::move(done)(OkStatus());
  Start(kEnqueues, std::make_shared<EnqueueOperation>(*this, std::move(elements), cancellation,
                                                      std::move(done)));
}

void Queue::Dequeue(int64_t count, bool up_to, Receive receive, Cancellation* cancellation,
                    Done done) {
  if (count == 0) return std::move(done)(std::move(receive)({}));
  Start(kDequeues, std::make_shared<DequeueOperation>(*this, count, up_to, std::move(receive),
                                                      cancellation, std::move(done)));
}

void Queue::Close(bool cancel_pending, Cancellation* cancellation, Done done) {
  if (!cancel_pending) {
    return Start(kEnqueues, std::make_shared<CloseOperation>(*this, cancellation, std::move(done)));
  }
  Ended ended;
  {
    MutexLock lock(mu_);
    closed_ = true;
    EndAll(kEnqueues, Cancelled("Enqueue operation was cancelled"), &ended);
    Advance(&ended);
  }
  Finish(ended);
  std::move(done)(OkStatus());
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
