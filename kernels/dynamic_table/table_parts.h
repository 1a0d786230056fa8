// SPDX-License-Identifier: Apache-2.0
//
// Definitions that the source files of DynamicTable share: the division of a batch into shards, the
// locks of one and of all shards, the names of the actions in a StateLog.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/dynamic_table/dynamic_table.h"

namespace penstock {

inline constexpr char kTablePushAction[] = "push", kTableEraseAction[] = "erase",
                      kTableImportAction[] = "import", kTablePutAction[] = "put";
inline constexpr int64_t kTableUpdatesMax = std::numeric_limits<int32_t>::max();

inline int ShardOf(uint64_t hash) {
  static_assert(TableSpec::kShards == 16);
  return static_cast<int>(hash >> 60);
}

inline StatusOr<Tensor> MakeTableTensor(Allocator& allocator, DType dtype, const Dims& dims) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  return Tensor::Make(allocator, dtype, shape);
}

// The keys of a batch, sorted by shard.
class DynamicTable::KeysByShard {
 public:
  explicit KeysByShard(const Tensor& ids) : keys_(ids.data<int64_t>()) {
    const int64_t count = ids.num_elements();
    hashes_.resize(count);
    positions_.resize(count);
    for (int64_t i = 0; i < count; ++i) {
      hashes_[i] = HashKey(keys_[i]);
      ++starts_[ShardOf(hashes_[i]) + 1];
    }
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    auto next = starts_;
    for (int64_t i = 0; i < count; ++i) {
      positions_[next[ShardOf(hashes_[i])]++] = static_cast<int32_t>(i);
    }
  }

  ShardKeys operator[](int64_t shard) const {
    const int64_t begin = starts_[shard], end = starts_[shard + 1];
    return {keys_, hashes_.data(),
            absl::MakeConstSpan(positions_).subspan(begin, static_cast<size_t>(end - begin))};
  }

 private:
  const int64_t* const keys_;
  std::vector<uint64_t> hashes_;
  std::vector<int32_t> positions_;
  std::array<int64_t, TableSpec::kShards + 1> starts_ = {};
};

// Holds the lock of one shard exclusively. The destructor stores the sizes of the shard before it
// releases the lock.
class ABSL_SCOPED_LOCKABLE DynamicTable::ShardWriterLock {
 public:
  ShardWriterLock(Shard& shard, Scheduler& threads) ABSL_EXCLUSIVE_LOCK_FUNCTION(shard.mu)
      : shard_(shard) {
    shard.mu.Lock(threads);
  }
  ~ShardWriterLock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    shard_.size.store(shard_.rows.size(), std::memory_order_relaxed);
    shard_.spilled_rows.store(shard_.rows.spilled_rows(), std::memory_order_relaxed);
    shard_.mu.Unlock();
  }
  ShardWriterLock(const ShardWriterLock&) = delete;
  ShardWriterLock& operator=(const ShardWriterLock&) = delete;

 private:
  Shard& shard_;
};

// Holds the locks of all shards for reading. (The thread-safety analysis does not support locks in
// a loop.)
class DynamicTable::AllShards {
 public:
  AllShards(const DynamicTable& table, Scheduler& threads) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : table_(table) {
    for (const auto& shard : table.shards_) shard->mu.ReaderLock(threads);
  }
  ~AllShards() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& shard : table_.shards_) shard->mu.ReaderUnlock();
  }
  AllShards(const AllShards&) = delete;
  AllShards& operator=(const AllShards&) = delete;

  // Calls fn(shard, row) for each row; shard.header(row) and shard.Values(row, ...) read it.
  template <class Fn>
  void ForEachRow(Fn fn) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& shard : table_.shards_) {
      // Uses a pointer, because the thread-safety analysis of the lambda does not see the locks.
      const TableShard* const rows = &shard->rows;
      rows->ForEachRow([&](int32_t row) { fn(*rows, row); });
    }
  }
  // Returns whether every shard has all keys that it dropped after `epoch`.
  bool HasAllDroppedAfter(int32_t epoch) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& shard : table_.shards_) {
      if (!shard->rows.dropped().HasAllAfter(epoch)) return false;
    }
    return true;
  }
  // Calls fn(key) for each key dropped after `epoch`, several times for some keys.
  template <class Fn>
  void ForEachDropped(int32_t epoch, Fn fn) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& shard : table_.shards_) shard->rows.dropped().ForEachAfter(epoch, fn);
  }
  bool HasRow(int64_t key) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return table_.shards_[ShardOf(HashKey(key))]->rows.Has(key);
  }

 private:
  const DynamicTable& table_;
};

}  // namespace penstock
