// SPDX-License-Identifier: Apache-2.0
//
// TableShard: one of the 16 shards of a DynamicTable. It holds rows, their index, the order of
// their last updates, and the counts of keys that have no row yet. Not thread-safe: DynamicTable
// locks it.
//
// The state depends only on the calls and their order, so a replay of the calls makes an equal
// shard. If spec.spills(), a row is in memory or in a file, which is not part of the state: a row
// that cannot be written to a file stays in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "kernels/dynamic_table/admission_filter.h"
#include "kernels/dynamic_table/dropped_keys.h"
#include "kernels/dynamic_table/key_index.h"
#include "kernels/dynamic_table/row_blocks.h"
#include "kernels/dynamic_table/row_order.h"
#include "kernels/dynamic_table/spilled_rows.h"
#include "kernels/dynamic_table/table_spec.h"

namespace penstock {

// The keys of a batch that belong to one shard, as positions in the batch, in ascending order.
struct ShardKeys {
  const int64_t* keys = nullptr;     // keys of the whole batch
  const uint64_t* hashes = nullptr;  // hashes of these keys
  absl::Span<const int32_t> positions = {};
};

class TableShard {
 public:
  // Updates a row. `position`: the position of the key in the batch; `updates`: the number of
  // updates of the row, including this one.
  using RowUpdate = absl::FunctionRef<void(int32_t position, float* values, int64_t updates)>;

  // Borrows `spec`, `epochs` and `files`. `spec` describes the whole table, of TableSpec::kShards
  // shards. Rows beyond the limit of the memory are kept in `files` if spec.spills().
  TableShard(const TableSpec& spec, const TableEpochs& epochs, Env& files,
             int64_t segment_bytes = SpilledRows::kSegmentBytes);

  int64_t size() const { return index_.size(); }
  bool Has(int64_t key) const { return index_.Find(key, HashKey(key)) != KeyIndex::kNone; }
  int64_t memory_rows() const { return size() - spilled_rows(); }
  int64_t spilled_rows() const { return spilled_ == nullptr ? 0 : spilled_->size(); }
  int64_t file_bytes() const { return spilled_ == nullptr ? 0 : spilled_->file_bytes(); }
  // Returns the rows in memory. The row numbers that Push returns refer to it.
  const RowBlocks& rows() const { return rows_; }
  const DroppedKeys& dropped() const { return dropped_; }

  // Returns the header of a row that ForEachRow found.
  const RowHeader& header(int32_t row) const {
    return row >= 0 ? rows_.header(row) : spilled_->header(SpilledRow(row));
  }
  // Returns the values and slots of a row that ForEachRow found. `scratch`, which has room for
  // them, holds them if they are read from a file. DataLoss as in SpilledRows::Read.
  StatusOr<const float*> Values(int32_t row, float* scratch) const;

  // Copies the row of each key to row `position` of `out`, a matrix with spec.width columns. Rows
  // in files stay there. DataLoss names a key whose row in a file is damaged.
  Status Pull(const ShardKeys& keys, float* out) const;

  // Makes rows for new keys that are admitted. Updates every key that has a row, in the order of
  // the batch, which may repeat keys. Appends the row of each updated key to `updated`, unless that
  // is null. Three errors leave the shard unchanged: ResourceExhausted if there is no memory; the
  // file system's error if a row in a file cannot be read; and the file system's error if an
  // earlier Evict could not write rows beyond the limit, and they still cannot be written. The
  // caller calls Evict afterwards.
  Status Push(Allocator& allocator, const ShardKeys& keys, int64_t step, RowUpdate update,
              std::vector<int32_t>* updated);
  // Drops the rows beyond the limit, or writes them to files, and drops at most `old_max` of the
  // rows that are too old. Rows that cannot be written stay in memory.
  void Evict(Allocator& allocator, int64_t old_max);

  void Erase(const ShardKeys& keys);
  // Drops all rows and counts, and frees the rows' memory.
  void Clear();
  // Makes room for `count` more rows. Errors as in Push.
  Status Reserve(Allocator& allocator, int64_t count);
  // Adds a row that an export returned. Returns its values and slots, which the caller fills in, or
  // null if the key has a row already. REQUIRES: there is room (Reserve).
  float* Put(int64_t key, int64_t updates, int64_t step);
  // Like Put, but if the key has a row, replaces it; the row then counts as the last updated.
  float* PutOrReplace(int64_t key, int64_t updates, int64_t step);

  // Calls fn(row) for each row; a row in a file has a negative number. If the shard keeps the order
  // of updates, the row that was updated least recently comes first.
  void ForEachRow(absl::FunctionRef<void(int32_t row)> fn) const;

 private:
  // Converts the number of a row in a file to its number in SpilledRows, and back. In the index
  // such rows have the numbers below KeyIndex::kNone.
  static int32_t SpilledRow(int32_t row) { return KeyIndex::kNone - 1 - row; }

  float* Fill(int32_t row, int64_t updates, int64_t step);
  int32_t Take(int64_t key, uint64_t hash);
  int32_t Create(int64_t key, uint64_t hash);
  int32_t Oldest() const;
  void Drop(int32_t row);
  void MoveToNewest(int32_t row);
  StatusOr<std::vector<float>> ReadSpilled(const std::vector<int32_t>& found) const;
  int32_t MoveToMemory(int32_t row, const float* values, uint64_t hash);
  Status SpillBeyondLimit(Allocator& allocator);

  const TableSpec& spec_;
  const TableEpochs& epochs_;
  const int64_t rows_max_, total_max_;
  const bool ordered_;
  KeyIndex index_;
  RowBlocks rows_;
  AdmissionFilter filter_;
  DroppedKeys dropped_;
  int64_t step_ = 0;  // the greatest step of all pushes
  RowOrder order_;    // order of the rows in memory; rows in files were updated before all of them
  std::unique_ptr<SpilledRows> spilled_;  // null unless spec.spills()
};

}  // namespace penstock
