// SPDX-License-Identifier: Apache-2.0
//
// TableShard: a sixteenth of a DynamicTable: rows, the index that finds them, the order of their
// last updates, and the counts of keys that have no row yet. Not thread-safe: DynamicTable locks.
//
// Its state depends on the calls and their order alone, so a replay of them makes an equal shard.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "kernels/dynamic_table/admission_filter.h"
#include "kernels/dynamic_table/dropped_keys.h"
#include "kernels/dynamic_table/key_index.h"
#include "kernels/dynamic_table/row_blocks.h"
#include "kernels/dynamic_table/table_spec.h"

namespace penstock {

// The keys of one operation that belong to one shard: positions in a batch, in ascending order.
struct ShardKeys {
  const int64_t* keys = nullptr;     // of the batch
  const uint64_t* hashes = nullptr;  // of each
  absl::Span<const int32_t> positions = {};
};

class TableShard {
 public:
  // Changes a row; `updates` counts this one. `position` is that of the key in the batch.
  using RowUpdate = absl::FunctionRef<void(int32_t position, float* values, int64_t updates)>;

  // Borrows `spec`, which must be one of a table of TableSpec::kShards shards, and `epochs`.
  TableShard(const TableSpec& spec, const TableEpochs& epochs);

  int64_t size() const { return index_.size(); }
  bool Has(int64_t key) const { return index_.Find(key, HashKey(key)) != KeyIndex::kNone; }
  const RowBlocks& rows() const { return rows_; }
  const DroppedKeys& dropped() const { return dropped_; }

  // Copies the rows of the keys to their positions in `out`, a matrix of spec.width columns.
  void Pull(const ShardKeys& keys, float* out) const;

  // Makes rows for new keys that are admitted, and updates all keys that have one, in the order of
  // the batch, so that keys may repeat. Appends the row of each updated key to `updated`, unless
  // that is null. ResourceExhausted: there is no memory, and nothing has changed. The caller then
  // calls Evict.
  Status Push(Allocator& allocator, const ShardKeys& keys, int64_t step, RowUpdate update,
              std::vector<int32_t>* updated);
  // Drops rows beyond the limit, and at most `old_max` rows that are too old.
  void Evict(int64_t old_max);

  void Erase(const ShardKeys& keys);
  // Drops all rows and counts, and gives the rows' memory back.
  void Clear();
  // Makes room for `count` more rows. ResourceExhausted if there is no memory.
  Status Reserve(Allocator& allocator, int64_t count);
  // Adds a row that was exported, and returns its values and slots for the caller to fill in. Null
  // if the key has a row. REQUIRES room.
  float* Put(int64_t key, int64_t updates, int64_t step);
  // As Put, but replaces the row of a key that has one; the row counts as the one updated last.
  float* PutOrReplace(int64_t key, int64_t updates, int64_t step);

  // Calls fn(row) for each row: the one whose last update is longest ago first, if that order is
  // kept.
  void ForEachRow(absl::FunctionRef<void(int32_t row)> fn) const;

 private:
  float* Fill(int32_t row, int64_t updates, int64_t step);
  int32_t Take(int64_t key, uint64_t hash);
  int32_t Create(int64_t key, uint64_t hash);
  void Drop(int32_t row);
  void LinkNewest(int32_t row);
  void Unlink(int32_t row);

  const TableSpec& spec_;
  const TableEpochs& epochs_;
  const int64_t rows_max_;
  const bool ordered_;
  KeyIndex index_;
  RowBlocks rows_;
  AdmissionFilter filter_;
  DroppedKeys dropped_;
  int64_t step_ = 0;  // the latest
  int32_t newest_ = -1, oldest_ = -1;
};

}  // namespace penstock
