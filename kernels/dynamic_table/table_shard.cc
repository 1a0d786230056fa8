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

// Returns, for each key, its row: KeyIndex::kNone if it has none, a smaller number if the row is in
// a file.
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

// Calls fn(i) for each index i of `found`. Prefetches `bytes` of each row a few calls ahead.
template <class Fn>
void ForEachRowFound(const RowBlocks& rows, const std::vector<int32_t>& found, int64_t bytes,
                     Fn fn) {
  const auto prefetch = [&](size_t i) {
    if (i < found.size() && found[i] >= 0) rows.Prefetch(found[i], bytes);
  };
  for (size_t i = 0; i < kRowsAhead; ++i) prefetch(i);
  for (size_t i = 0; i < found.size(); ++i) {
    prefetch(i + kRowsAhead);
    fn(i);
  }
}

}  // namespace

TableShard::TableShard(const TableSpec& spec, const TableEpochs& epochs, Env& files,
                       int64_t segment_bytes)
    : spec_(spec),
      epochs_(epochs),
      rows_max_(spec.shard_rows_max()),
      total_max_(spec.shard_total_max()),
      ordered_(spec.ordered()),
      rows_(spec.floats()),
      filter_(spec.admit_after, std::max<int64_t>(1, spec.filter_counters / TableSpec::kShards)),
      dropped_(epochs),
      spilled_(spec.spills() ? std::make_unique<SpilledRows>(spec, files, segment_bytes)
                             : nullptr) {}

StatusOr<const float*> TableShard::Values(int32_t row, float* scratch) const {
  if (row >= 0) return rows_.values(row);
  RETURN_IF_ERROR(spilled_->Read(SpilledRow(row), scratch));
  return scratch;
}

Status TableShard::Pull(const ShardKeys& keys, float* out) const {
  const int64_t width = spec_.width;
  const auto bytes = static_cast<int64_t>(sizeof(RowHeader) + width * sizeof(float));
  const std::vector<int32_t> found = FindRows(index_, keys);
  std::vector<float> scratch(spilled_rows() > 0 ? spec_.floats() : 0);
  Status status;
  ForEachRowFound(rows_, found, bytes, [&](size_t i) {
    const int32_t position = keys.positions[i];
    float* const to = out + position * width;
    if (found[i] >= 0) {
      std::memcpy(to, rows_.values(found[i]), width * sizeof(float));
    } else if (found[i] < KeyIndex::kNone) {
      if (status.ok()) status = spilled_->Read(SpilledRow(found[i]), scratch.data());
      std::copy_n(scratch.data(), width, to);
    } else if (spec_.admit_after > 1) {
      std::fill_n(to, width, spec_.default_value);
    } else {
      spec_.initializer.Fill(keys.keys[position], to, width);
    }
  });
  return status;
}

Status TableShard::Push(Allocator& allocator, const ShardKeys& keys, int64_t step, RowUpdate update,
                        std::vector<int32_t>* updated) {
  RETURN_IF_ERROR(SpillBeyondLimit(allocator));
  const std::vector<int32_t> found = FindRows(index_, keys);
  ASSIGN_OR_RETURN(const std::vector<float> spilled, ReadSpilled(found));
  const float* back = spilled.data();
  RETURN_IF_ERROR(Reserve(
      allocator, std::count_if(found.begin(), found.end(), [](int32_t row) { return row < 0; })));
  RETURN_IF_ERROR(filter_.Reserve(allocator));
  if (updated != nullptr) updated->reserve(found.size());
  step_ = std::max(step_, step);
  const auto bytes = static_cast<int64_t>(sizeof(RowHeader) + spec_.floats() * sizeof(float));
  ForEachRowFound(rows_, found, bytes, [&](size_t i) {
    const int32_t position = keys.positions[i];
    const int64_t key = keys.keys[position];
    const uint64_t hash = keys.hashes[position];
    int32_t row = found[i];
    // An earlier occurrence of the key in this batch may have moved its row to memory.
    if (row < 0) row = index_.Find(key, hash);
    if (found[i] < KeyIndex::kNone) {
      if (row < 0) row = MoveToMemory(row, back, hash);
      back += spec_.floats();
    }
    if (row < 0) {
      if (!filter_.Admit(hash)) return;
      row = Create(key, hash);
    }
    RowHeader& header = rows_.header(row);
    if (header.updates < std::numeric_limits<int32_t>::max()) ++header.updates;
    header.step = step_;
    header.epoch = epochs_.now;
    update(position, rows_.values(row), header.updates);
    if (ordered_) MoveToNewest(row);
    if (updated != nullptr) updated->push_back(row);
  });
  return OkStatus();
}

// Returns the values and slots of the rows that are in files, in the order of `found`. DataLoss as
// in SpilledRows::Read.
StatusOr<std::vector<float>> TableShard::ReadSpilled(const std::vector<int32_t>& found) const {
  std::vector<float> values;
  if (spilled_rows() == 0) return values;
  const auto count =
      std::count_if(found.begin(), found.end(), [](int32_t row) { return row < KeyIndex::kNone; });
  values.resize(count * spec_.floats());
  float* next = values.data();
  for (const int32_t row : found) {
    if (row >= KeyIndex::kNone) continue;
    RETURN_IF_ERROR(spilled_->Read(SpilledRow(row), next));
    next += spec_.floats();
  }
  return values;
}

// Moves a row from its file to memory. Returns its number there. REQUIRES: there is room in memory.
int32_t TableShard::MoveToMemory(int32_t row, const float* values, uint64_t hash) {
  const RowHeader header = spilled_->header(SpilledRow(row));
  spilled_->Remove(SpilledRow(row));
  const int32_t back = rows_.Take();
  rows_.header(back) = header;
  std::copy_n(values, spec_.floats(), rows_.values(back));
  order_.AddNewest(rows_, back);
  index_.Set(header.key, hash, back);
  return back;
}

// Moves the oldest rows beyond the limit of the memory to files. If a row cannot be written,
// returns the error; the remaining rows stay in memory.
Status TableShard::SpillBeyondLimit(Allocator& allocator) {
  constexpr int64_t kRowsAtATime = 1024;
  if (spilled_ == nullptr) return OkStatus();
  bool spilled_any = false;
  while (memory_rows() > rows_max_) {
    std::vector<int32_t> rows;
    const int64_t count = std::min(memory_rows() - rows_max_, kRowsAtATime);
    for (int32_t row = order_.oldest(); std::ssize(rows) < count; row = rows_.header(row).newer) {
      rows.push_back(row);
    }
    ASSIGN_OR_RETURN(const std::vector<int32_t> there, spilled_->Add(allocator, rows_, rows));
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t key = rows_.header(rows[i]).key;
      index_.Set(key, HashKey(key), SpilledRow(there[i]));
      order_.Remove(rows_, rows[i]);
      rows_.Release(rows[i]);
    }
    spilled_any = true;
  }
  while (spilled_any && spilled_->Compact()) continue;
  return OkStatus();
}

void TableShard::Evict(Allocator& allocator, int64_t old_max) {
  while (total_max_ > 0 && size() > total_max_) Drop(Oldest());
  for (int64_t i = 0; spec_.max_age > 0 && i < old_max && size() > 0; ++i) {
    const int32_t oldest = Oldest();
    // step_ is the greatest step, so the difference is not negative, but it may exceed an int64_t.
    const uint64_t age = static_cast<uint64_t>(step_) - static_cast<uint64_t>(header(oldest).step);
    if (age <= static_cast<uint64_t>(spec_.max_age)) break;
    Drop(oldest);
  }
  // Ignores the error, because the updates have been made. No row is lost: the rows stay in memory,
  // and if they still cannot be written then, the next push fails before it changes anything.
  SpillBeyondLimit(allocator).IgnoreError();
}

// Returns the row that was updated least recently. REQUIRES: there is one, and ordered_.
int32_t TableShard::Oldest() const {
  return spilled_rows() > 0 ? SpilledRow(spilled_->oldest()) : order_.oldest();
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
  order_.Clear();
  if (spilled_ != nullptr) spilled_->Clear();
}

Status TableShard::Reserve(Allocator& allocator, int64_t count) {
  RETURN_IF_ERROR(SpillBeyondLimit(allocator));
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
  if (row < KeyIndex::kNone) {
    spilled_->Remove(SpilledRow(row));
    index_.Erase(key, hash);
    row = KeyIndex::kNone;
  }
  if (row == KeyIndex::kNone) {
    row = Take(key, hash);
  } else if (ordered_) {
    MoveToNewest(row);
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
    for (int32_t row = spilled_rows() > 0 ? spilled_->oldest() : -1; row >= 0;
         row = spilled_->header(row).newer) {
      fn(SpilledRow(row));
    }
    for (int32_t row = order_.oldest(); row >= 0; row = rows_.header(row).newer) fn(row);
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
  if (ordered_) order_.AddNewest(rows_, row);
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
  const int64_t key = header(row).key;
  index_.Erase(key, HashKey(key));
  if (row < 0) {
    spilled_->Remove(SpilledRow(row));
  } else {
    if (ordered_) order_.Remove(rows_, row);
    rows_.Release(row);
  }
  dropped_.Add(key, size());
}

void TableShard::MoveToNewest(int32_t row) {
  if (order_.newest() == row) return;
  order_.Remove(rows_, row);
  order_.AddNewest(rows_, row);
}

}  // namespace penstock
