// SPDX-License-Identifier: Apache-2.0
//
// Makes a queue from a StateLog, and applies the log's records to it.
#include <utility>

#include "core/base/mutex.h"
#include "core/op/state_replay.h"
#include "kernels/data/queue.h"

namespace penstock {
namespace {

// The number of values before the types and shapes of the components.
constexpr size_t kSpecValues = 9;

// The kinds of queues: TypeName() of each, and the function that makes its store.
struct QueueType {
  const char* name;
  std::unique_ptr<ElementStore> (*store)(Queue::Seeds);
};
constexpr QueueType kQueueTypes[] = {
    {"FIFOQueue", [](Queue::Seeds) { return NewFifoStore(); }},
    {"PaddingFIFOQueue", [](Queue::Seeds) { return NewFifoStore(); }},
    {"RandomShuffleQueue",
     [](Queue::Seeds seeds) {
       return NewRandomStore(PhiloxNumbers(Philox::FromSeeds(seeds.first, seeds.second)));
     }},
    {"PriorityQueue", [](Queue::Seeds) { return NewPriorityStore(); }},
};

template <int kType>
StatusOr<std::shared_ptr<Resource>> MakeQueue(const std::string& name, const ReplayValues& values,
                                              Env&) {
  QueueSpec spec{.type = kQueueTypes[kType].name};
  RETURN_IF_ERROR(values.ExpectAtLeast(kSpecValues));
  int64_t numbers[kSpecValues];
  for (size_t i = 0; i < kSpecValues; ++i) {
    ASSIGN_OR_RETURN(numbers[i], values.Int(i));
  }
  spec.capacity = numbers[0];
  spec.min_after_dequeue = numbers[1];
  spec.seed = numbers[2];
  spec.seed2 = numbers[3];
  spec.repeatable = numbers[4] != 0;
  const Queue::Seeds seeds(numbers[5], numbers[6]);
  const int64_t components = numbers[7], shapes = numbers[8];
  if (components < 0 || (shapes != 0 && shapes != components)) {
    return values.Error(StrCat(shapes, " shapes of ", components, " components"));
  }
  RETURN_IF_ERROR(values.Expect(kSpecValues + components + shapes));
  for (int64_t i = 0; i < components; ++i) {
    ASSIGN_OR_RETURN(const DType dtype, values.Type(kSpecValues + i));
    spec.types.push_back(dtype);
  }
  for (int64_t i = 0; i < shapes; ++i) {
    ASSIGN_OR_RETURN(PartialShape shape, values.GetShape(kSpecValues + components + i));
    spec.shapes.push_back(std::move(shape));
  }
  const bool by_priority = string_view(spec.type) == "PriorityQueue";
  if (by_priority && (components == 0 || spec.types[0] != DType::kInt64 || shapes == 0 ||
                      spec.shapes[0].rank() != 0)) {
    return values.Error("component 0 of a PriorityQueue must be an int64 scalar");
  }
  if (spec.min_after_dequeue < 0 || (spec.repeatable && spec.capacity <= 0)) {
    return values.Error("capacity or min_after_dequeue is out of range");
  }
  return Queue::Make(name, std::move(spec), seeds);
}

const ResourceMakerDeclaration makers[] = {
    {kQueueTypes[0].name, MakeQueue<0>},
    {kQueueTypes[1].name, MakeQueue<1>},
    {kQueueTypes[2].name, MakeQueue<2>},
    {kQueueTypes[3].name, MakeQueue<3>},
};

}  // namespace

std::shared_ptr<Queue> Queue::Make(std::string name, QueueSpec spec, Seeds seeds) {
  for (const QueueType& type : kQueueTypes) {
    if (string_view(type.name) != spec.type) continue;
    return std::make_shared<Queue>(std::move(name), std::move(spec), type.store(seeds), seeds);
  }
  CHECK(false, "there are no queues of type ", spec.type);
  return nullptr;
}

std::vector<Tensor> Queue::Describe() const {
  std::vector<Tensor> values;
  for (const int64_t number :
       {spec_.capacity, spec_.min_after_dequeue, spec_.seed, spec_.seed2, int64_t{spec_.repeatable},
        static_cast<int64_t>(seeds_.first), static_cast<int64_t>(seeds_.second),
        static_cast<int64_t>(spec_.types.size()), static_cast<int64_t>(spec_.shapes.size())}) {
    values.push_back(Value(number));
  }
  for (const DType dtype : spec_.types) values.push_back(Value(dtype));
  for (const PartialShape& shape : spec_.shapes) values.push_back(Value(shape));
  return values;
}

Status Queue::ReplayPut(const ReplayValues& values, const UpdateOrigin& origin) {
  const size_t components = spec_.types.size();
  if (components == 0 || values.size() % components != 0) {
    return values.Error(StrCat(values.size(), " components of elements of ", components));
  }
  std::vector<Element> elements;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = i % components;
    const Tensor& value = values.Get(i);
    if (value.dtype() != spec_.types[c] ||
        (!spec_.shapes.empty() && !spec_.shapes[c].Compatible(value.shape()))) {
      return values.Error(
          StrCat("component ", c, " is ", Name(value.dtype()), value.shape().ToString()));
    }
    if (c == 0) elements.emplace_back();
    elements.back().push_back(value);
  }
  Put(absl::MakeSpan(elements), origin);
  return OkStatus();
}

Status Queue::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  MutexLock lock(mu_);
  if (change.action == kEnqueueAction) return ReplayPut(values, origin);
  const bool last = change.action == kDequeueAction;
  if (last || change.action == kTakeAction) {
    RETURN_IF_ERROR(values.Expect(1));
    ASSIGN_OR_RETURN(const int64_t count, values.Int(0));
    if (count < 0 || count > store_->size()) {
      return values.Error(StrCat(count, " elements of a queue that has ", store_->size()));
    }
    Take(count, last, &replayed_taken_, origin);
    if (last) replayed_taken_.clear();
    return OkStatus();
  }
  if (change.action == kPutBackAction) {
    PutBack(std::exchange(replayed_taken_, {}), origin);
    return OkStatus();
  }
  if (change.action != kCloseAction) return values.UnknownAction();
  MarkClosed(origin);
  return OkStatus();
}

void Queue::EndReplay(const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  if (!replayed_taken_.empty()) PutBack(std::exchange(replayed_taken_, {}), origin);
}

}  // namespace penstock
