// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/staging_area.h"

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kStageAction[] = "stage", kUnstageAction[] = "unstage", kClearAction[] = "clear";

}  // namespace

int64_t StagingArea::BytesOf(const Element& element) {
  int64_t bytes = 0;
  for (const Tensor& tensor : element) {
    if (tensor.valid()) bytes += static_cast<int64_t>(tensor.bytes());
  }
  return bytes;
}

Status StagingArea::Limits::CheckSize(int64_t bytes_of_tensors) const {
  if (bytes == 0 || bytes_of_tensors <= bytes) return OkStatus();
  return ResourceExhausted("Attempted to insert tensors with combined size of '", bytes_of_tensors,
                           "' bytes into Staging Area with a memory limit of '", bytes, "'.");
}

class StagingArea::StageOperation final : public Operation {
 public:
  StageOperation(StagingArea& area, Element element, const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        area_(area),
        bytes_(BytesOf(element)),
        element_(std::move(element)) {}

  StatusOr<Progress> Try() override {
    area_.mu_.AssertHeld();
    const Limits& limits = area_.limits_;
    RETURN_IF_ERROR(limits.CheckSize(bytes_));
    const bool full =
        (limits.elements > 0 && static_cast<int64_t>(area_.elements_.size()) >= limits.elements) ||
        (limits.bytes > 0 && area_.bytes_ + bytes_ > limits.bytes);
    if (full) return Progress::kNone;
    area_.Push(std::move(element_), origin());
    return Progress::kDone;
  }

 private:
  StagingArea& area_;
  const int64_t bytes_;
  Element element_;
};

class StagingArea::UnstageOperation final : public Operation {
 public:
  UnstageOperation(StagingArea& area, Types types, Receive receive, const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        area_(area),
        types_(std::move(types)),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    area_.mu_.AssertHeld();
    if (area_.elements_.empty()) return Progress::kNone;
    RETURN_IF_ERROR(area_.CheckTypes(area_.elements_.front(), types_));
    element_ = area_.Pop(origin());
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
                const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
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

void StagingArea::Stage(Element element, const Caller& caller, Done done) {
  Start(kStages,
        std::make_shared<StageOperation>(*this, std::move(element), caller, std::move(done)));
}

void StagingArea::Unstage(Types types, Receive receive, const Caller& caller, Done done) {
  Start(kUnstages, std::make_shared<UnstageOperation>(*this, std::move(types), std::move(receive),
                                                      caller, std::move(done)));
}

void StagingArea::Peek(int64_t index, Types types, Receive receive, const Caller& caller,
                       Done done) {
  Start(kPeeks, std::make_shared<PeekOperation>(*this, index, std::move(types), std::move(receive),
                                                caller, std::move(done)));
}

Status StagingArea::CheckTypes(const Element& element, const Types& types) const {
  const bool same = std::equal(element.begin(), element.end(), types.begin(), types.end(),
                               [](const Tensor& t, DType dtype) { return t.dtype() == dtype; });
  if (same) return OkStatus();
  return InvalidArgument("staging area '", name(), "' holds an element of ", element.size(),
                         " tensors whose types are not dtypes");
}

void StagingArea::Push(Element element, const UpdateOrigin& origin) {
  bytes_ += BytesOf(element);
  elements_.push_back(std::move(element));
  const Element& pushed = elements_.back();
  Changed(origin, kStageAction, [&] { return std::vector<Tensor>(pushed.begin(), pushed.end()); });
}

Element StagingArea::Pop(const UpdateOrigin& origin) {
  Element element = std::move(elements_.front());
  elements_.pop_front();
  bytes_ -= BytesOf(element);
  Changed(origin, kUnstageAction, [] { return std::vector<Tensor>(); });
  return element;
}

std::deque<Element> StagingArea::PopAll(const UpdateOrigin& origin) {
  std::deque<Element> all;
  all.swap(elements_);
  bytes_ = 0;
  Changed(origin, kClearAction, [] { return std::vector<Tensor>(); });
  return all;
}

void StagingArea::Clear(const UpdateOrigin& origin) {
  std::deque<Element> dropped;  // freed without the lock
  Ended ended;
  {
    MutexLock lock(mu_);
    dropped = PopAll(origin);
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

std::vector<Tensor> StagingArea::Describe() const {
  return {Value(limits_.elements), Value(limits_.bytes)};
}

Status StagingArea::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  MutexLock lock(mu_);
  if (change.action == kStageAction) {
    Push(Element(change.values.begin(), change.values.end()), origin);
    return OkStatus();
  }
  if (change.action == kClearAction) {
    PopAll(origin);
    return OkStatus();
  }
  if (change.action != kUnstageAction) return values.UnknownAction();
  if (elements_.empty()) return values.Error("the staging area is empty");
  Pop(origin);
  return OkStatus();
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeStagingArea(const std::string& name,
                                                    const ReplayValues& values, Env&) {
  RETURN_IF_ERROR(values.Expect(2));
  StagingArea::Limits limits;
  ASSIGN_OR_RETURN(limits.elements, values.Int(0));
  ASSIGN_OR_RETURN(limits.bytes, values.Int(1));
  return std::make_shared<StagingArea>(name, limits);
}
const ResourceMakerDeclaration staging_area_maker("StagingArea", MakeStagingArea);

}  // namespace

}  // namespace penstock
