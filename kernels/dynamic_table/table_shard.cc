// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/table_shard.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace penstock {
namespace {

// The numbers of index entries and of rows to prefetch ahead, so that the latencies of memory
// overlap.
constexpr size_t kEntriesAhead = 16, kRowsAhead = 4;

// Returns the row of each key, or KeyIndex::kNone.
std::vector<int32_t> FindRows(const KeyIndex& index, const ShardKeys& keys) {
  const auto at = keys.positions;
  std::vector<int32_t> found(at.size());
  for (size_t i = 0; i < std::min(kEntriesAhead, at.size()); ++i) {
    index.Prefetch(keys.hashes[at[i]]);
  }
  for (size_t i = 0; i < at.size(); ++i) {
    if (i + kEntriesAhead < at.size()) index.Prefetch(keys.hashes[at[i + kEntriesAhead]]);
    found[i] = index.Find(keys.keys[at[i]], keys.hashes[at[i]]);
  }
  return found;
}

// Calls fn(i) for each element i of `found`. Prefetches `bytes` of each row a few calls ahead.
template <class Fn>
void ForEachRowFound(const RowBlocks& rows, const std::vector<int32_t>& found, int64_t bytes,
                     Fn fn) {
  const auto prefetch = [&](size_t i) {
    if (i < found.size() && found[i] != KeyIndex::kNone) rows.Prefetch(found[i], bytes);
  };
  for (size_t i = 0; i < kRowsAhead; ++i) prefetch(i);
  for (size_t i = 0; i < found.size(); ++i) {
    prefetch(i + kRowsAhead);
    fn(i);
  }
}

}  // namespace

TableShard::TableShard(const TableSpec& spec, const TableEpochs& epochs)
    : spec_(spec),
      epochs_(epochs),
      rows_max_(spec.shard_rows_max()),
      ordered_(spec.ordered()),
      rows_(spec.floats()),
      filter_(spec.admit_after, std::max<int64_t>(1, spec.filter_counters / TableSpec::kShards)),
      dropped_(epochs) {}

void TableShard::Pull(const ShardKeys& keys, float* out) const {
  const int64_t width = spec_.width;
  const auto bytes = static_cast<int64_t>(sizeof(RowHeader) + width * sizeof(float));
  const std::vector<int32_t> found = FindRows(index_, keys);
  ForEachRowFound(rows_, found, bytes, [&](size_t i) {
    const int32_t position = keys.positions[i];
    float* const to = out + position * width;
    if (found[i] != KeyIndex::kNone) {
      std::memcpy(to, rows_.values(found[i]), width * sizeof(float));
    } else if (spec_.admit_after > 1) {
      std::fill_n(to, width, spec_.default_value);
    } else {
      spec_.initializer.Fill(keys.keys[position], to, width);
    }
  });
}

Status TableShard::Push(Allocator& allocator, const ShardKeys& keys, int64_t step, RowUpdate update,
                        std::vector<int32_t>* updated) {
  const std::vector<int32_t> found = FindRows(index_, keys);
  RETURN_IF_ERROR(Reserve(allocator, std::count(found.begin(), found.end(), KeyIndex::kNone)));
  RETURN_IF_ERROR(filter_.Reserve(allocator));
  if (updated != nullptr) updated->reserve(found.size());
  step_ = std::max(step_, step);
  const auto bytes = static_cast<int64_t>(sizeof(RowHeader) + spec_.floats() * sizeof(float));
  ForEachRowFound(rows_, found, bytes, [&](size_t i) {
    const int32_t position = keys.positions[i];
    const int64_t key = keys.keys[position];
    const uint64_t hash = keys.hashes[position];
    int32_t row = found[i];
    // The key may have got a row by an earlier occurrence in this batch.
    if (row == KeyIndex::kNone) row = index_.Find(key, hash);
    if (row == KeyIndex::kNone) {
      if (!filter_.Admit(hash)) return;
      row = Create(key, hash);
    }
    RowHeader& header = rows_.header(row);
    if (header.updates < std::numeric_limits<int32_t>::max()) ++header.updates;
    header.step = step_;
    header.epoch = epochs_.now;
    update(position, rows_.values(row), header.updates);
    if (ordered_ && newest_ != row) {
      Unlink(row);
      LinkNewest(row);
    }
    if (updated != nullptr) updated->push_back(row);
  });
  return OkStatus();
}

void TableShard::Evict(int64_t old_max) {
  while (rows_max_ > 0 && size() > rows_max_) Drop(oldest_);
  if (spec_.max_age == 0) return;
  for (int64_t i = 0; i < old_max && oldest_ >= 0; ++i) {
    // step_ is the greatest step, so the difference is not negative, but it may exceed an int64_t.
    const uint64_t age =
        static_cast<uint64_t>(step_) - static_cast<uint64_t>(rows_.header(oldest_).step);
    if (age <= static_cast<uint64_t>(spec_.max_age)) return;
    Drop(oldest_);
  }
}

void TableShard::Erase(const ShardKeys& keys) {
  for (const int32_t position : keys.positions) {
    const int32_t row = index_.Find(keys.keys[position], keys.hashes[position]);
    if (row != KeyIndex::kNone) Drop(row);
  }
}

void TableShard::Clear() {
  index_.Clear();
  rows_.Clear();
  filter_.Clear();
  dropped_.Forget();
  step_ = 0;
  newest_ = oldest_ = -1;
}

Status TableShard::Reserve(Allocator& allocator, int64_t count) {
  RETURN_IF_ERROR(rows_.Reserve(allocator, count));
  return index_.Reserve(allocator, index_.size() + count);
}

float* TableShard::Put(int64_t key, int64_t updates, int64_t step) {
  const uint64_t hash = HashKey(key);
  if (index_.Find(key, hash) != KeyIndex::kNone) return nullptr;
  return Fill(Take(key, hash), updates, step);
}

float* TableShard::PutOrReplace(int64_t key, int64_t updates, int64_t step) {
  const uint64_t hash = HashKey(key);
  int32_t row = index_.Find(key, hash);
  if (row == KeyIndex::kNone) {
    row = Take(key, hash);
  } else if (ordered_ && newest_ != row) {
    Unlink(row);
    LinkNewest(row);
  }
  return Fill(row, updates, step);
}

// Writes the header of a row that an export returned. Returns its values and slots.
float* TableShard::Fill(int32_t row, int64_t updates, int64_t step) {
  RowHeader& header = rows_.header(row);
  header.updates = static_cast<int32_t>(updates);
  step_ = std::max(step_, step);
  header.step = step;
  header.epoch = epochs_.now;
  return rows_.values(row);
}

void TableShard::ForEachRow(absl::FunctionRef<void(int32_t row)> fn) const {
  if (ordered_) {
    for (int32_t row = oldest_; row >= 0; row = rows_.header(row).newer) fn(row);
    return;
  }
  for (int32_t row = 0; row < rows_.end(); ++row) {
    if (rows_.header(row).updates >= 0) fn(row);
  }
}

int32_t TableShard::Take(int64_t key, uint64_t hash) {
  const int32_t row = rows_.Take();
  index_.Insert(key, hash, row);
  rows_.header(row) = {
      .key = key, .step = step_, .updates = 0, .newer = -1, .older = -1, .epoch = epochs_.now};
  if (ordered_) LinkNewest(row);
  return row;
}

int32_t TableShard::Create(int64_t key, uint64_t hash) {
  const int32_t row = Take(key, hash);
  float* values = rows_.values(row);
  spec_.initializer.Fill(key, values, spec_.width);
  for (const float initial : spec_.slots) {
    values += spec_.width;
    std::fill_n(values, spec_.width, initial);
  }
  return row;
}

void TableShard::Drop(int32_t row) {
  const int64_t key = rows_.header(row).key;
  if (ordered_) Unlink(row);
  index_.Erase(key, HashKey(key));
  rows_.Release(row);
  dropped_.Add(key, size());
}

void TableShard::LinkNewest(int32_t row) {
  RowHeader& header = rows_.header(row);
  header.newer = -1;
  header.older = newest_;
  (newest_ >= 0 ? rows_.header(newest_).newer : oldest_) = row;
  newest_ = row;
}

void TableShard::Unlink(int32_t row) {
  const RowHeader& header = rows_.header(row);
  (header.newer >= 0 ? rows_.header(header.newer).older : newest_) = header.older;
  (header.older >= 0 ? rows_.header(header.older).newer : oldest_) = header.newer;
}

}  // namespace penstock
