// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/barrier.h"

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kInsertAction[] = "insert", kTakeAction[] = "take", kCloseAction[] = "close";

}  // namespace

class Barrier::TakeOperation final : public Operation {
 public:
  TakeOperation(Barrier& barrier, int64_t count, const TakeOptions& options, Receive receive,
                const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        barrier_(barrier),
        count_(count),
        options_(options),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    barrier_.mu_.AssertHeld();
    const int64_t ready = barrier_.ready_->size();
    int64_t wanted = count_;
    if (barrier_.closed_) {
      const int64_t total = ready + static_cast<int64_t>(barrier_.incomplete_.size());
      if (options_.allow_small_batch) {
        wanted = std::min(wanted, options_.wait_for_incomplete ? total : ready);
      }
      if (wanted == 0 || total < wanted) return TooFewElements(total);
    }
    if (ready < wanted) return Progress::kNone;
    taken_ = barrier_.TakeReady(wanted, origin());
    return Progress::kDone;
  }
  Status Deliver() override { return std::move(receive_)(std::move(taken_)); }

 private:
  Status TooFewElements(int64_t total) const {
    return OutOfRange("Barrier '", barrier_.name(),
                      "' is closed and has insufficient elements (requested ", count_,
                      ", total size ", total, ")");
  }

  Barrier& barrier_;
  const int64_t count_;
  const TakeOptions options_;
  Receive receive_;
  std::vector<Element> taken_;
};

Status Barrier::CheckKeys(absl::Span<const std::string> keys) const {
  if (!closed_) return OkStatus();
  for (const std::string& key : keys) {
    if (incomplete_.contains(key)) continue;
    return Cancelled("Barrier ", name(),
                     " is closed, but attempted to insert a brand new key: ", key,
                     ". Pending enqueues cancelled: ", dropping_,
                     ". Number of incomplete keys: ", incomplete_.size(), ".");
  }
  return OkStatus();
}

Status Barrier::InsertOne(int c, const std::string& key, Tensor value, bool* began) {
  const auto [it, first] = incomplete_.try_emplace(key);
  Tuple& tuple = it->second;
  if (first) tuple = {next_index_, Element(spec_.types.size())};
  *began |= first;
  if (tuple.components[c].valid()) {
    return InvalidArgument("Key ", key, " already has a value for component ", c, " in barrier ",
                           name());
  }
  tuple.components[c] = std::move(value);
  const auto there = [](const Tensor& t) { return t.valid(); };
  if (!std::all_of(tuple.components.begin(), tuple.components.end(), there)) return OkStatus();
  Element element = {Tensor::Scalar(tuple.index), Tensor::Scalar(key)};
  for (Tensor& component : tuple.components) element.push_back(std::move(component));
  ready_->Put(std::move(element));
  incomplete_.erase(it);
  return OkStatus();
}

Status Barrier::InsertAll(int c, absl::Span<const std::string> keys, std::vector<Element> values,
                          const UpdateOrigin& origin) {
  std::vector<Tensor> applied;
  Status status = CheckKeys(keys);
  bool began = false;
  size_t count = 0;
  for (; count < keys.size() && status.ok(); ++count) {
    if (logged()) applied.push_back(values[count][0]);
    status = InsertOne(c, keys[count], std::move(values[count][0]), &began);
  }
  if (!status.ok() && count > 0) --count;
  if (began) ++next_index_;
  Changed(origin, kInsertAction, [&] {
    const auto inserted = keys.subspan(0, count);
    std::vector<Tensor> record = {Value(int64_t{c}), Tensor::Vector(std::vector<std::string>(
                                                         inserted.begin(), inserted.end()))};
    record.insert(record.end(), applied.begin(), applied.begin() + count);
    return record;
  });
  return status;
}

std::vector<Element> Barrier::TakeReady(int64_t count, const UpdateOrigin& origin) {
  std::vector<Element> taken;
  while (static_cast<int64_t>(taken.size()) < count) taken.push_back(ready_->Take());
  Changed(origin, kTakeAction, [&] { return std::vector<Tensor>{Value(count)}; });
  return taken;
}

Status Barrier::MarkClosed(bool drop_incomplete, const UpdateOrigin& origin) {
  if (closed_ && (dropping_ || !drop_incomplete)) {
    return Cancelled("Barrier '", name(), "' is already closed.");
  }
  closed_ = true;
  dropping_ = drop_incomplete;
  if (drop_incomplete) incomplete_.clear();
  Changed(origin, kCloseAction,
          [&] { return std::vector<Tensor>{Value(int64_t{drop_incomplete})}; });
  return OkStatus();
}

Status Barrier::Insert(int c, absl::Span<const std::string> keys, std::vector<Element> values,
                       const UpdateOrigin& origin) {
  Ended ended;
  Status status;
  {
    MutexLock lock(mu_);
    status = InsertAll(c, keys, std::move(values), origin);
    Advance(&ended);
  }
  Finish(ended);
  return status;
}

void Barrier::Take(int64_t count, const TakeOptions& options, Receive receive, const Caller& caller,
                   Done done) {
  if (count == 0) return std::move(done)(std::move(receive)({}));
  Start(0, std::make_shared<TakeOperation>(*this, count, options, std::move(receive), caller,
                                           std::move(done)));
}

Status Barrier::Close(bool drop_incomplete, const UpdateOrigin& origin) {
  Ended ended;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(MarkClosed(drop_incomplete, origin));
    Advance(&ended);
  }
  Finish(ended);
  return OkStatus();
}

int64_t Barrier::ready_size() const {
  MutexLock lock(mu_);
  return ready_->size();
}

int64_t Barrier::incomplete_size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(incomplete_.size());
}

std::string Barrier::DebugString() const {
  return StrCat("Barrier '", name(), "', ", ready_size(), " tuples ready, ", incomplete_size(),
                " incomplete");
}

std::vector<Tensor> Barrier::Describe() const {
  std::vector<Tensor> values;
  for (const DType dtype : spec_.types) values.push_back(Value(dtype));
  for (const PartialShape& shape : spec_.shapes) values.push_back(Value(shape));
  return values;
}

Status Barrier::ReplayInsert(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  RETURN_IF_ERROR(values.ExpectAtLeast(2));
  ASSIGN_OR_RETURN(const int64_t c, values.Int(0));
  RETURN_IF_ERROR(values.ExpectStrings(1));
  if (c < 0 || c >= static_cast<int64_t>(spec_.types.size())) {
    return values.Error(StrCat("there is no component ", c));
  }
  const auto keys = values.Get(1).flat<std::string>();
  RETURN_IF_ERROR(values.Expect(2 + keys.size()));
  std::vector<Element> components;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Tensor& value = values.Get(2 + i);
    if (value.dtype() != spec_.types[c] || !spec_.shapes[c].Compatible(value.shape())) {
      return values.Error(
          StrCat("component ", c, " is ", Name(value.dtype()), value.shape().ToString()));
    }
    components.push_back({value});
  }
  return InsertAll(static_cast<int>(c), keys, std::move(components), origin);
}

Status Barrier::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  MutexLock lock(mu_);
  if (change.action == kInsertAction) return ReplayInsert(change, origin);
  RETURN_IF_ERROR(values.Expect(1));
  ASSIGN_OR_RETURN(const int64_t number, values.Int(0));
  if (change.action == kCloseAction) return MarkClosed(number != 0, origin);
  if (change.action != kTakeAction) return values.UnknownAction();
  if (number < 0 || number > ready_->size()) {
    return values.Error(StrCat(number, " tuples of ", ready_->size()));
  }
  TakeReady(number, origin);
  return OkStatus();
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeBarrier(const std::string& name, const ReplayValues& values,
                                                Env&) {
  Barrier::Spec spec;
  const size_t components = values.size() / 2;
  RETURN_IF_ERROR(values.Expect(2 * components));
  for (size_t i = 0; i < components; ++i) {
    ASSIGN_OR_RETURN(const DType dtype, values.Type(i));
    spec.types.push_back(dtype);
    ASSIGN_OR_RETURN(PartialShape shape, values.GetShape(components + i));
    spec.shapes.push_back(std::move(shape));
  }
  return std::make_shared<Barrier>(name, std::move(spec));
}
const ResourceMakerDeclaration barrier_maker("Barrier", MakeBarrier);

}  // namespace

}  // namespace penstock
