// SPDX-License-Identifier: Apache-2.0
//
// TableEpochs and DroppedKeys: which rows of a table have changed since an export. An epoch is the
// time between two exports that name a mark; rows and dropped keys carry the epoch of their change.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace penstock {

// The epochs of one table. They are raised while no row can change.
struct TableEpochs {
  std::atomic<int32_t> now = 0;     // 0: no export has named a mark
  std::atomic<int32_t> oldest = 0;  // the oldest one that an export may still name
};

// The keys that a shard has dropped, with the epoch of each. It forgets some rather than to take
// more memory than a few bytes per row of the shard: then Knows() is false for earlier epochs.
// Not thread-safe.
class DroppedKeys {
 public:
  // Borrows `epochs`.
  explicit DroppedKeys(const TableEpochs& epochs) : epochs_(epochs) {}

  // `rows`: how many the shard has. Keys that are dropped in epoch 0 are not kept.
  void Add(int64_t key, int64_t rows);
  // Forgets everything up to now.
  void Forget();
  // Whether each key dropped after `epoch` is here.
  bool Knows(int32_t epoch) const { return epoch >= known_after_; }
  // Calls fn(key) for each key dropped after `epoch`: several times if it was dropped several
  // times; it may have a row again. REQUIRES Knows(epoch).
  template <class Fn>
  void ForEachAfter(int32_t epoch, Fn fn) const {
    for (const Entry& entry : entries_) {
      if (entry.epoch > epoch) fn(entry.key);
    }
  }

 private:
  struct Entry {
    int64_t key;
    int32_t epoch;
  };

  const TableEpochs& epochs_;
  std::vector<Entry> entries_;
  int32_t known_after_ = 0;
};

}  // namespace penstock
