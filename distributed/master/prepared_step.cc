// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/prepared_step.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/op/flops.h"

namespace penstock {
namespace {
constexpr int64_t kDeregisterTimeoutMs = 10'000;

// Sorts the steps, because the order of the hash map differs between runs of the process.
void SortByNames(std::vector<std::shared_ptr<PreparedStep>>* steps) {
  const auto key = [](const std::shared_ptr<PreparedStep>& step) {
    const CallableSpec& names = step->names();
    return std::tie(names.feeds, names.fetches, names.targets);
  };
  std::sort(steps->begin(), steps->end(), [&](const auto& a, const auto& b) {
    return key(a) != key(b) ? key(a) < key(b) : a->partial() < b->partial();
  });
}

}  // namespace

Status DeadFetchError(string_view fetch) {
  return InvalidArgument("fetch '", fetch, "' has no value: it is on a branch that was not taken");
}

PreparedStep::~PreparedStep() {
  if (parts.empty() || tasks->session_deleted.load()) return;
  for (const Part& part : parts) {
    // If the call fails, the task keeps its part until the end of the session.
    part.task->client->DeregisterGraph(
        session, part.graph,
        {.incarnation = part.task->id.incarnation, .timeout_ms = kDeregisterTimeoutMs},
        Done([tasks = tasks](Status) {}));
  }
}

bool PreparedStep::AwaitReady(Done done) {
  Status status;
  {
    MutexLock lock(mu_);
    if (state_ == State::kNew || state_ == State::kPreparing) {
      waiting_.push_back(std::move(done));
      return std::exchange(state_, State::kPreparing) == State::kNew;
    }
    status = status_;
  }
  std::move(done)(std::move(status));
  return false;
}

void PreparedStep::Finish(const Status& status) {
  std::vector<Done> waiting;
  {
    MutexLock lock(mu_);
    state_ = status.ok() ? State::kReady : State::kFailed;
    status_ = status;
    waiting.swap(waiting_);
    ready_.store(status.ok(), std::memory_order_release);
  }
  for (Done& done : waiting) std::move(done)(status);
}

std::shared_ptr<const PreparedStep::Graphs> PreparedStep::graphs() const {
  MutexLock lock(mu_);
  return graphs_;
}

void PreparedStep::KeepGraphs(std::shared_ptr<const Graphs> graphs) {
  MutexLock lock(mu_);
  graphs_ = std::move(graphs);
}

void PreparedStep::NoteFirstFeeds(absl::Span<const Tensor> tensors) {
  MutexLock lock(mu_);
  if (feeds_noted_.exchange(true) || KnowsFeedSizes()) return;
  for (const Tensor& tensor : tensors) fed_shapes_.emplace_back(tensor.shape());
}

std::vector<PartialShape> PreparedStep::LikelyShapes() const {
  MutexLock lock(mu_);
  return fed_shapes_.empty() ? expected_shapes : fed_shapes_;
}

Status PreparedStep::CheckFeeds(absl::Span<const Tensor> tensors) const {
  if (tensors.size() != feeds.size()) {
    return InvalidArgument("expected ", feeds.size(), " feeds, got ", tensors.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) RETURN_IF_ERROR(CheckFeed(i, tensors[i]));
  return OkStatus();
}

bool PreparedStep::FeedsDiffer(absl::Span<const Tensor> tensors) const {
  double expected = 0, fed = 0;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const auto bytes = static_cast<double>(SizeOf(feeds[i].dtype));
    expected += Elements(expected_shapes[i]) * bytes;
    fed += Elements(tensors[i].shape()) * bytes;
  }
  return fed > 2 * expected || expected > 2 * fed;
}

bool PreparedStep::KnowsFeedSizes() const {
  return std::all_of(expected_shapes.begin(), expected_shapes.end(),
                     [](const PartialShape& shape) { return shape.fully_known(); });
}

bool PreparedStep::AnyFeedLarger(absl::Span<const Tensor> tensors) const {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const PartialShape& expected = expected_shapes[i];
    if (!expected.fully_known() || tensors[i].num_elements() > Elements(expected)) return true;
  }
  return false;
}

Status PreparedStep::CheckFeed(size_t index, const Tensor& tensor) const {
  const Feed& feed = feeds[index];
  if (tensor.dtype() == feed.dtype &&
      (!feed.shape.known_rank() || feed.shape.Compatible(tensor.shape()))) {
    return OkStatus();
  }
  return InvalidArgument("feed '", feed.name, "': expected ", Name(feed.dtype), " of shape ",
                         feed.shape.ToString(), ", got ",
                         tensor.valid() ? Name(tensor.dtype()) : "no tensor", " of shape ",
                         tensor.shape().ToString());
}

Status PreparedStep::CheckFetches(absl::Span<const Tensor> tensors) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].valid()) continue;
    return DeadFetchError(names_.fetches[i]);
  }
  return OkStatus();
}

bool StepCache::Names::operator==(const Names& other) const {
  if (num_feeds() != other.num_feeds()) return false;
  for (size_t i = 0; i < num_feeds(); ++i) {
    if (feed(i) != other.feed(i)) return false;
  }
  return partial == other.partial && *fetches == *other.fetches && *targets == *other.targets;
}

std::shared_ptr<PreparedStep> StepCache::Get(const Feeds& feeds,
                                             const std::vector<std::string>& fetches,
                                             const std::vector<std::string>& targets) {
  return Get({.fed = &feeds, .fetches = &fetches, .targets = &targets});
}

std::shared_ptr<PreparedStep> StepCache::GetPartial(const CallableSpec& names) {
  return Get({.feeds = &names.feeds,
              .fetches = &names.fetches,
              .targets = &names.targets,
              .partial = true});
}

std::shared_ptr<PreparedStep> StepCache::Get(const Names& names) {
  std::vector<std::shared_ptr<PreparedStep>> dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto found = steps_.find(names);
  if (found != steps_.end()) return found->second;

  if (steps_.size() >= kStepsMax) dropped = TakeAll();
  CallableSpec spec{.fetches = *names.fetches, .targets = *names.targets};
  for (size_t i = 0; i < names.num_feeds(); ++i) spec.feeds.push_back(names.feed(i));
  auto step = std::make_shared<PreparedStep>(std::move(spec), names.partial);
  steps_.emplace(NamesOf(*step), step);
  return step;
}

std::vector<std::shared_ptr<PreparedStep>> StepCache::List() const {
  std::vector<std::shared_ptr<PreparedStep>> steps;
  {
    MutexLock lock(mu_);
    for (const auto& [names, step] : steps_) {
      if (!step->partial()) steps.push_back(step);
    }
  }
  SortByNames(&steps);
  return steps;
}

// Removes all steps and returns them, sorted, because the tasks are told of each dropped step, in
// this order.
std::vector<std::shared_ptr<PreparedStep>> StepCache::TakeAll() {
  std::vector<std::shared_ptr<PreparedStep>> all;
  for (auto& [names, step] : steps_) all.push_back(std::move(step));
  steps_.clear();
  SortByNames(&all);
  return all;
}

void StepCache::Drop(const PreparedStep& step) {
  std::shared_ptr<PreparedStep> dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto found = steps_.find(NamesOf(step));
  if (found == steps_.end() || found->second.get() != &step) return;
  dropped = std::move(found->second);
  steps_.erase(found);
}

void StepCache::Clear() {
  std::vector<std::shared_ptr<PreparedStep>> cleared;  // destroyed after the lock is released
  MutexLock lock(mu_);
  cleared = TakeAll();
}

void StepCache::Replace(const PreparedStep& step, const std::shared_ptr<PreparedStep>& other) {
  std::shared_ptr<PreparedStep> dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto found = steps_.find(NamesOf(step));
  if (found == steps_.end() || found->second.get() != &step) return;
  dropped = std::move(found->second);
  steps_.erase(found);
  steps_.emplace(NamesOf(*other), other);
}

}  // namespace penstock
