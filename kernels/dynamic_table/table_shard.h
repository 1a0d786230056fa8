// SPDX-License-Identifier: Apache-2.0
//
// TableShard: one of the 16 shards of a DynamicTable. It holds rows, their index, the order of
// their last updates, and the counts of keys that have no row yet. Not thread-safe: DynamicTable
// locks it.
//
// The state depends only on the calls and their order, so a replay of the calls makes an equal
// shard.
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

// The keys of a batch that belong to one shard, as positions in the batch, in ascending order.
struct ShardKeys {
  const int64_t* keys = nullptr;     // of all the batch
  const uint64_t* hashes = nullptr;  // of all these keys
  absl::Span<const int32_t> positions = {};
};

class TableShard {
 public:
  // Updates a row. `position`: that of the key in the batch; `updates`: the number of updates of
  // the row, including this one.
  using RowUpdate = absl::FunctionRef<void(int32_t position, float* values, int64_t updates)>;

  // Borrows `spec` and `epochs`. `spec` describes the whole table, of TableSpec::kShards shards.
  TableShard(const TableSpec& spec, const TableEpochs& epochs);

  int64_t size() const { return index_.size(); }
  bool Has(int64_t key) const { return index_.Find(key, HashKey(key)) != KeyIndex::kNone; }
  const RowBlocks& rows() const { return rows_; }
  const DroppedKeys& dropped() const { return dropped_; }

  // Copies the row of each key to row `position` of `out`, a matrix with spec.width columns.
  void Pull(const ShardKeys& keys, float* out) const;

  // Makes rows for new keys that are admitted. Updates every key that has a row, in the order of
  // the batch, which may repeat keys. Appends the row of each updated key to `updated`, unless that
  // is null. ResourceExhausted, with nothing changed, if there is no memory. The caller calls Evict
  // afterwards.
  Status Push(Allocator& allocator, const ShardKeys& keys, int64_t step, RowUpdate update,
              std::vector<int32_t>* updated);
  // Drops the rows beyond the limit, and at most `old_max` of the rows that are too old.
  void Evict(int64_t old_max);

  void Erase(const ShardKeys& keys);
  // Drops all rows and counts, and frees the rows' memory.
  void Clear();
  // Makes room for `count` more rows. ResourceExhausted if there is no memory.
  Status Reserve(Allocator& allocator, int64_t count);
  // Adds a row that an export returned. Returns its values and slots, which the caller fills in, or
  // null if the key has a row already. REQUIRES room.
  float* Put(int64_t key, int64_t updates, int64_t step);
  // Like Put, but if the key has a row, replaces it; the row then counts as the last updated.
  float* PutOrReplace(int64_t key, int64_t updates, int64_t step);

  // Calls fn(row) for each row. If the shard keeps the order of updates, the row that was updated
  // least recently comes first.
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
  int64_t step_ = 0;  // the greatest step of all pushes
  int32_t newest_ = -1, oldest_ = -1;
};

}  // namespace penstock
