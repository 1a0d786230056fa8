// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/callables.h"

#include <utility>

namespace penstock {
namespace {

Status NoSuchCallable(int64_t callable) {
  return InvalidArgument("callable ", callable, " was never made or has been released");
}

}  // namespace

int64_t Callables::Add(Entry entry) {
  MutexLock lock(mu_);
  entries_.emplace(next_, std::move(entry));
  return next_++;
}

StatusOr<Callables::Entry> Callables::Find(int64_t callable) const {
  MutexLock lock(mu_);
  const auto found = entries_.find(callable);
  if (found == entries_.end()) return NoSuchCallable(callable);
  return found->second;
}

Status Callables::Release(int64_t callable) {
  Entry released;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto found = entries_.find(callable);
  if (found == entries_.end()) return NoSuchCallable(callable);
  released = std::move(found->second);
  entries_.erase(found);
  return OkStatus();
}

void Callables::Clear() {
  std::map<int64_t, Entry> cleared;  // destroyed after the lock is released
  MutexLock lock(mu_);
  cleared.swap(entries_);
}

std::vector<std::shared_ptr<PreparedStep>> Callables::Steps() const {
  std::vector<std::shared_ptr<PreparedStep>> steps;
  MutexLock lock(mu_);
  for (const auto& [callable, entry] : entries_) steps.push_back(entry.step);
  return steps;
}

void Callables::Replace(const PreparedStep& step, const std::shared_ptr<PreparedStep>& other) {
  std::vector<std::shared_ptr<PreparedStep>> replaced;  // destroyed after the lock is released
  MutexLock lock(mu_);
  for (auto& [callable, entry] : entries_) {
    if (entry.step.get() == &step) replaced.push_back(std::exchange(entry.step, other));
  }
}

}  // namespace penstock
