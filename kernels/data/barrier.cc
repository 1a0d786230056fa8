// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/barrier.h"

#include <algorithm>
#include <utility>

namespace penstock {

class Barrier::TakeOperation final : public Operation {
 public:
  TakeOperation(Barrier& barrier, int64_t count, const TakeOptions& options, Receive receive,
                Cancellation* cancellation, Done done)
      : Operation(cancellation, std::move(done)),
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
      if (wanted == 0 || total < wanted) return NeverEnough(total);
    }
    if (ready < wanted) return Progress::kNone;
    while (static_cast<int64_t>(taken_.size()) < wanted) taken_.push_back(barrier_.ready_->Take());
    return Progress::kDone;
  }
  Status Deliver() override { return std::move(receive_)(std::move(taken_)); }

 private:
  Status NeverEnough(int64_t total) const {
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

Status Barrier::InsertOne(int c, const std::string& key, Tensor value) {
  const auto [it, first] = incomplete_.try_emplace(key);
  Tuple& tuple = it->second;
  if (first) tuple = {next_index_, Element(spec_.types.size())};
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

Status Barrier::Insert(int c, absl::Span<const std::string> keys, std::vector<Element> values) {
  Ended ended;
  Status status;
  {
    MutexLock lock(mu_);
    status = CheckKeys(keys);
    for (size_t i = 0; i < keys.size() && status.ok(); ++i) {
      status = InsertOne(c, keys[i], std::move(values[i][0]));
    }
    ++next_index_;
    Advance(&ended);
  }
  Finish(ended);
  return status;
}

void Barrier::Take(int64_t count, const TakeOptions& options, Receive receive,
                   Cancellation* cancellation, Done done) {
  if (count == 0) return std::move(done)(std::move(receive)({}));
  Start(0, std::make_shared<TakeOperation>(*this, count, options, std::move(receive), cancellation,
                                           std::move(done)));
}

Status Barrier::Close(bool drop_incomplete) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (closed_ && (dropping_ || !drop_incomplete)) {
      return Cancelled("Barrier '", name(), "' is already closed.");
    }
    closed_ = true;
    dropping_ = drop_incomplete;
    if (drop_incomplete) incomplete_.clear();
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

}  // namespace penstock
