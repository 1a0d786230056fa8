// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/staging_area.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

int64_t BytesOf(const Element& element) {
  int64_t bytes = 0;
  for (const Tensor& tensor : element) bytes += static_cast<int64_t>(tensor.bytes());
  return bytes;
}

}  // namespace

class StagingArea::StageOperation final : public Operation {
 public:
  StageOperation(StagingArea& area, Element element, Cancellation* cancellation, Done done)
      : Operation(cancellation, std::move(done)),
        area_(area),
        bytes_(BytesOf(element)),
        element_(std::move(element)) {}

  StatusOr<Progress> Try() override {
    area_.mu_.AssertHeld();
    const Limits& limits = area_.limits_;
    if (limits.bytes > 0 && bytes_ > limits.bytes) {
      return ResourceExhausted("Attempted to insert tensors with combined size of '", bytes_,
                               "' bytes into Staging Area with a memory limit of '", limits.bytes,
                               "'.");
    }
    const bool full =
        (limits.elements > 0 && static_cast<int64_t>(area_.elements_.size()) >= limits.elements) ||
        (limits.bytes > 0 && area_.bytes_ + bytes_ > limits.bytes);
    if (full) return Progress::kNone;
    area_.elements_.push_back(std::move(element_));
    area_.bytes_ += bytes_;
    return Progress::kDone;
  }

 private:
  StagingArea& area_;
  const int64_t bytes_;
  Element element_;
};

class StagingArea::UnstageOperation final : public Operation {
 public:
  UnstageOperation(StagingArea& area, Types types, Receive receive, Cancellation* cancellation,
                   Done done)
      : Operation(cancellation, std::move(done)),
        area_(area),
        types_(std::move(types)),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    area_.mu_.AssertHeld();
    if (area_.elements_.empty()) return Progress::kNone;
    RETURN_IF_ERROR(area_.CheckTypes(area_.elements_.front(), types_));
    element_ = std::move(area_.elements_.front());
    area_.elements_.pop_front();
    area_.bytes_ -= BytesOf(element_);
    return Progress::kDone;
  }
  Status Deliver() override {
    std::move(receive_)(std::move(element_));
    return OkStatus();
  }

 private:
  StagingArea& area_;
  const Types types_;
  Receive receive_;
  Element element_;
};

class StagingArea::PeekOperation final : public Operation {
 public:
  PeekOperation(StagingArea& area, int64_t index, Types types, Receive receive,
                Cancellation* cancellation, Done done)
      : Operation(cancellation, std::move(done)),
        area_(area),
        index_(index),
        types_(std::move(types)),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    area_.mu_.AssertHeld();
    if (static_cast<int64_t>(area_.elements_.size()) <= index_) return Progress::kNone;
    RETURN_IF_ERROR(area_.CheckTypes(area_.elements_[index_], types_));
    element_ = area_.elements_[index_];
    return Progress::kDone;
  }
  Status Deliver() override {
    std::move(receive_)(std::move(element_));
    return OkStatus();
  }

 private:
  StagingArea& area_;
  const int64_t index_;
  const Types types_;
  Receive receive_;
  Element element_;
};

void StagingArea::Stage(Element element, Cancellation* cancellation, Done done) {
  Start(kStages,
        std::make_shared<StageOperation>(*this, std::move(element), cancellation, std::move(done)));
}

void StagingArea::Unstage(Types types, Receive receive, Cancellation* cancellation, Done done) {
  Start(kUnstages, std::make_shared<UnstageOperation>(*this, std::move(types), std::move(receive),
                                                      cancellation, std::move(done)));
}

void StagingArea::Peek(int64_t index, Types types, Receive receive, Cancellation* cancellation,
                       Done done) {
  Start(kPeeks, std::make_shared<PeekOperation>(*this, index, std::move(types), std::move(receive),
                                                cancellation, std::move(done)));
}

Status StagingArea::CheckTypes(const Element& element, const Types& types) const {
  const bool same = std::equal(element.begin(), element.end(), types.begin(), types.end(),
                               [](const Tensor& t, DType dtype) { return t.dtype() == dtype; });
  if (same) return OkStatus();
  return InvalidArgument("staging area '", name(), "' holds an element of ", element.size(),
                         " tensors whose types are not dtypes");
}

void StagingArea::Clear() {
  std::deque<Element> dropped;  // their memory is given back without the lock
  Ended ended;
  {
    MutexLock lock(mu_);
    dropped.swap(elements_);
    bytes_ = 0;
    Advance(&ended);
  }
  Finish(ended);
}

int64_t StagingArea::size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(elements_.size());
}

std::string StagingArea::DebugString() const {
  return StrCat("StagingArea '", name(), "', ", size(), " elements");
}

}  // namespace penstock
