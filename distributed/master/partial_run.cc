// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/partial_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/join.h"
#include "core/compiler/compile.h"

namespace penstock {
namespace {

// Returns whether the names mean the same tensor: "x" and "x:0" do.
bool SameTensor(string_view a, string_view b) {
  return absl::StripSuffix(a, ":0") == absl::StripSuffix(b, ":0");
}

// Returns the index of `name` among `names`, and marks it in `used`. Clients of the protocol
// know these error texts.
StatusOr<int> MarkUsed(const char* what, const char* done, const std::string& name,
                       const std::vector<std::string>& names, std::vector<bool>* used) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& n) { return SameTensor(n, name); });
  if (found == names.end()) {
    return InvalidArgument("The ", what, " ", name, " was not specified in partial_run_setup.");
  }
  const int index = static_cast<int>(found - names.begin());
  if ((*used)[index]) {
    return InvalidArgument("The ", what, " ", name, " has already been ", done, ".");
  }
  (*used)[index] = true;
  return index;
}

}  // namespace

PartialRun::PartialRun(std::shared_ptr<const PreparedStep> prepared, std::string client_device)
    : prepared_(std::move(prepared)),
      client_device_(std::move(client_device)),
      fed_(prepared_->names().feeds.size(), false),
      fetched_(prepared_->names().fetches.size(), false),
      left_(fed_.size() + fetched_.size()) {
  // If the set-up names a tensor twice, the second fetch counts as done from the start, because the
  // tensor is received only once.
  const std::vector<std::string>& fetches = prepared_->names().fetches;
  for (size_t i = 0; i < fetches.size(); ++i) {
    for (size_t before = 0; before < i && !fetched_[i]; ++before) {
      fetched_[i] = SameTensor(fetches[before], fetches[i]);
    }
    if (fetched_[i]) --left_;
  }
}

HashedKey PartialRun::KeyOf(const std::string& tensor) const {
  return HashedKey({.src_device = client_device_, .dst_device = client_device_, .tensor = tensor});
}

StatusOr<PartialRun::Instalment> PartialRun::Take(const Feeds& feeds,
                                                  const std::vector<std::string>& fetches) {
  const CallableSpec& names = prepared_->names();
  Instalment taken;
  MutexLock lock(mu_);
  if (ended_.has_value() && !ended_->ok()) return *ended_;
  std::vector<bool> fed = fed_, fetched = fetched_;
  for (const auto& [name, value] : feeds) {
    ASSIGN_OR_RETURN(const int index, MarkUsed("feed", "fed", name, names.feeds, &fed));
    RETURN_IF_ERROR(prepared_->CheckFeed(index, value));
    taken.feeds.push_back(index);
  }
  for (const std::string& name : fetches) {
    ASSIGN_OR_RETURN(const int index, MarkUsed("fetch", "fetched", name, names.fetches, &fetched));
    RETURN_IF_ERROR(CheckComputable(index, fed));
    taken.fetches.push_back(index);
  }
  fed_ = std::move(fed);
  fetched_ = std::move(fetched);
  left_ -= taken.feeds.size() + taken.fetches.size();
  return taken;
}

Status PartialRun::CheckComputable(int fetch, const std::vector<bool>& fed) const {
  const CallableSpec& names = prepared_->names();
  std::vector<std::string> missing;
  for (const int feed : prepared_->feeds_of_fetches[fetch]) {
    if (!fed[feed]) missing.push_back(names.feeds[feed]);
  }
  if (missing.empty()) return OkStatus();
  return InvalidArgument("Fetch ", names.fetches[fetch],
                         " can't be computed from the feeds that have been fed so far: it needs ",
                         absl::StrJoin(missing, ", "));
}

void PartialRun::Run(const Feeds& feeds, const std::vector<std::string>& fetches,
                     std::vector<Tensor>* outputs, Done done) {
  const auto taken = Take(feeds, fetches);
  if (!taken.ok()) return std::move(done)(taken.status());
  outputs->clear();
  outputs->resize(fetches.size());
  Done all([self = shared_from_this(), done = std::move(done)](Status status) mutable {
    if (status.ok() && !self->finished()) return std::move(done)(OkStatus());
    // A failure becomes the step's error, and is reported once the step has ended.
    if (!status.ok()) self->cancellation_.Cancel(status);
    self->AfterEnd(std::move(done));
  });
  const auto join = std::make_shared<Join>(std::move(all));
  if (step_ == nullptr)
    return Join::Part(join)(OkStatus());  // the partial run has no feeds and fetches
  // Receives first: a feed may make a fetch available at once, and the receiver of that fetch
  // should be waiting by then.
  for (size_t i = 0; i < fetches.size(); ++i) {
    step_->Recv(KeyOf(PartialFetch(taken->fetches[i])),
                [self = shared_from_this(), output = &(*outputs)[i], name = fetches[i],
                 part = Join::Part(join)](Status status, Tensor value, bool is_dead) mutable {
                  if (status.ok() && is_dead) status = DeadFetchError(name);
                  *output = std::move(value);
                  std::move(part)(std::move(status));
                });
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    Status sent = step_->Send(KeyOf(PartialFeed(taken->feeds[i])), feeds[i].second, false);
    if (!sent.ok()) Join::Part(join)(std::move(sent));
  }
}

void PartialRun::Cancel(const Status& why, Done done) {
  cancellation_.Cancel(why);
  AfterEnd(std::move(done));
}

bool PartialRun::finished() const {
  MutexLock lock(mu_);
  return left_ == 0 || (ended_.has_value() && !ended_->ok());
}

bool PartialRun::ended() const {
  MutexLock lock(mu_);
  return ended_.has_value();
}

void PartialRun::AfterEnd(Done done) {
  Status status;
  {
    MutexLock lock(mu_);
    if (!ended_.has_value()) {
      after_end_.push_back(std::move(done));
      return;
    }
    status = *ended_;
  }
  std::move(done)(std::move(status));
}

void PartialRun::Ended(const Status& status) {
  std::vector<Done> waiting;
  {
    MutexLock lock(mu_);
    ended_ = status;
    waiting.swap(after_end_);
  }
  for (Done& done : waiting) std::move(done)(status);
}

}  // namespace penstock
