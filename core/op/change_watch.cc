// SPDX-License-Identifier: Apache-2.0
#include "core/op/change_watch.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/op/variable.h"

namespace penstock {

// Defined in variable.cc, which calls it after each change of a variable, under the variable's
// lock. Null while no variable is watched. It is not in a header of core/op, because all code that
// uses ops would depend on it.
extern std::atomic<void (*)(const Variable&, absl::FunctionRef<Slices()> changed)> change_observer;

namespace {

constexpr int64_t kWordBits = 64;

struct Watches {
  Mutex mu;  // locked after the locks of variables
  std::vector<ChangeWatch*> list ABSL_GUARDED_BY(mu);
};

// Never destroyed.
Watches& AllWatches() {
  static auto* const watches = new Watches;
  return *watches;
}

}  // namespace

ChangeWatch::ChangeWatch(const Variable& variable, int64_t bytes)
    : variable_(variable),
      bytes_(bytes),
      marks_((bytes + kChunkBytes * kWordBits - 1) / (kChunkBytes * kWordBits)) {
  Watches& watches = AllWatches();
  MutexLock lock(watches.mu);
  watches.list.push_back(this);
  change_observer.store(&ChangeWatch::Note, std::memory_order_release);
}

ChangeWatch::~ChangeWatch() {
  Watches& watches = AllWatches();
  MutexLock lock(watches.mu);
  watches.list.erase(std::find(watches.list.begin(), watches.list.end(), this));
  if (watches.list.empty()) change_observer.store(nullptr, std::memory_order_release);
}

bool ChangeWatch::all() const {
  MutexLock lock(AllWatches().mu);
  return all_;
}

void ChangeWatch::Take(absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  std::vector<uint64_t> marks(marks_.size());
  {
    MutexLock lock(AllWatches().mu);
    std::swap(marks, marks_);
  }
  for (size_t word = 0; word < marks.size(); ++word) {
    for (int64_t bit = 0; marks[word] != 0 && bit < kWordBits; ++bit) {
      if ((marks[word] >> bit & 1) == 0) continue;
      const int64_t begin = (static_cast<int64_t>(word) * kWordBits + bit) * kChunkBytes;
      fn(begin, std::min(bytes_, begin + kChunkBytes));
    }
  }
}

void ChangeWatch::Note(const Variable& variable, absl::FunctionRef<Slices()> changed) {
  Watches& watches = AllWatches();
  const auto is_watched = [&](const ChangeWatch* watch) { return &watch->variable_ == &variable; };
  {
    MutexLock lock(watches.mu);
    if (std::none_of(watches.list.begin(), watches.list.end(), is_watched)) return;
  }
  // A watch that begins after this point copies the value with this change.
  const Slices slices = changed();
  MutexLock lock(watches.mu);
  for (ChangeWatch* const watch : watches.list) {
    if (is_watched(watch)) watch->Mark(slices);
  }
}

void ChangeWatch::Mark(const Slices& slices) {
  if (slices.all()) all_ = true;
  if (all_) return;
  const int64_t length = slices.length() * static_cast<int64_t>(SizeOf(variable_.dtype()));
  for (const int64_t number : slices.numbers()) {
    const int64_t begin = number * length, end = std::min(bytes_, begin + length);
    for (int64_t chunk = begin / kChunkBytes; chunk * kChunkBytes < end; ++chunk) {
      marks_[chunk / kWordBits] |= uint64_t{1} << (chunk % kWordBits);
    }
  }
}

}  // namespace penstock
