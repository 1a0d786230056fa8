// SPDX-License-Identifier: Apache-2.0
//
// TableEpochs and DroppedKeys: record which rows of a table have changed since an export. An epoch
// is the time between two exports that set a mark. Each row and each dropped key has the epoch of
// its last change.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace penstock {

// The epochs of one table. An export changes them while it holds the locks of all shards, so no row
// changes meanwhile.
struct TableEpochs {
  std::atomic<int32_t> now = 0;     // 0 until an export has set a mark
  std::atomic<int32_t> oldest = 0;  // epoch of the oldest mark that an export may still use
};

// The keys that a shard has dropped, each with the epoch of the drop. To limit its memory to a few
// bytes per row of the shard, it may forget keys; HasAllAfter() is then false for earlier epochs.
// Not thread-safe.
class DroppedKeys {
 public:
  // Borrows `epochs`.
  explicit DroppedKeys(const TableEpochs& epochs) : epochs_(epochs) {}

  // Adds a key. `rows` is the number of rows of the shard. Ignores the key if the current epoch is
  // 0, because no export needs it.
  void Add(int64_t key, int64_t rows);
  // Forgets all keys dropped so far.
  void Forget();
  // Returns whether this object has every key that was dropped after `epoch`.
  bool HasAllAfter(int32_t epoch) const { return epoch >= known_after_; }
  // Calls fn(key) for each key dropped after `epoch`, several times for some keys. A key may have a
  // row again. REQUIRES: HasAllAfter(epoch).
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
