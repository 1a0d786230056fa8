// SPDX-License-Identifier: Apache-2.0
//
// Imports to a DynamicTable: rows of a checkpoint, which replace the rows of the table or are added
// to them.
#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/dynamic_table/dynamic_table.h"
#include "kernels/dynamic_table/table_parts.h"

namespace penstock {

Status DynamicTable::CheckRows(const TableRows& rows) const {
  const int64_t n = rows.keys.rank() == 1 ? rows.keys.dim(0) : -1;
  const auto check = [&](const char* name, const Tensor& tensor, DType dtype,
                         const Shape& shape) -> Status {
    if (tensor.dtype() == dtype && tensor.shape() == shape) return OkStatus();
    return InvalidArgument("rows for table '", name_, "': ", name, " must be ", Name(dtype),
                           shape.ToString(), ", are ", Name(tensor.dtype()),
                           tensor.shape().ToString(),
                           ". A checkpoint restores to a table of the same width and optimizer");
  };
  if (n < 0) return CheckIds(rows.keys);
  RETURN_IF_ERROR(check("keys", rows.keys, DType::kInt64, {n}));
  RETURN_IF_ERROR(check("values", rows.values, DType::kFloat, {n, spec_.width}));
  RETURN_IF_ERROR(
      check("slots", rows.slots, DType::kFloat, {n, std::ssize(spec_.slots), spec_.width}));
  RETURN_IF_ERROR(check("updates", rows.updates, DType::kInt64, {n}));
  RETURN_IF_ERROR(check("steps", rows.steps, DType::kInt64, {n}));
  for (const int64_t updates : rows.updates.flat<int64_t>()) {
    if (updates < 0 || updates > kTableUpdatesMax) {
      return InvalidArgument("rows for table '", name_, "': updates must be from 0 to ",
                             kTableUpdatesMax, ", are ", updates);
    }
  }
  return OkStatus();
}

StatusOr<DynamicTable::ShardRows> DynamicTable::MakeShardRows(int64_t count,
                                                              Allocator& allocator) const {
  ShardRows made;
  ASSIGN_OR_RETURN(made.keys, MakeTableTensor(allocator, DType::kInt64, {count}));
  ASSIGN_OR_RETURN(made.state, MakeTableTensor(allocator, DType::kFloat, {count, spec_.floats()}));
  ASSIGN_OR_RETURN(made.updates, MakeTableTensor(allocator, DType::kInt64, {count}));
  ASSIGN_OR_RETURN(made.steps, MakeTableTensor(allocator, DType::kInt64, {count}));
  return made;
}

// Returns the rows of one shard, copied to adjacent memory. ResourceExhausted if there is no
// memory.
StatusOr<DynamicTable::ShardRows> DynamicTable::CopyToShardRows(absl::Span<const Place> places,
                                                                Allocator& allocator) const {
  ASSIGN_OR_RETURN(ShardRows to, MakeShardRows(std::ssize(places), allocator));
  const int64_t width = spec_.width, rest = spec_.floats() - width;
  for (int64_t k = 0; k < std::ssize(places); ++k) {
    const auto& [rows, i] = places[k];
    to.keys.mutable_data<int64_t>()[k] = rows->keys.data<int64_t>()[i];
    to.updates.mutable_data<int64_t>()[k] = rows->updates.data<int64_t>()[i];
    to.steps.mutable_data<int64_t>()[k] = rows->steps.data<int64_t>()[i];
    float* const state = to.state.mutable_data<float>() + k * spec_.floats();
    std::copy_n(rows->values.data<float>() + i * width, width, state);
    std::copy_n(rows->slots.data<float>() + i * rest, rest, state + width);
  }
  return to;
}

// Returns, for each shard, the places of its rows in `rows`. If the table keeps the order of
// updates, sorts the rows by the step of their last update. InvalidArgument if the rows do not fit
// the table.
StatusOr<std::vector<std::vector<DynamicTable::Place>>> DynamicTable::PlacesByShard(
    absl::Span<const TableRows> rows) const {
  std::vector<std::vector<Place>> places(TableSpec::kShards);
  for (const TableRows& each : rows) {
    RETURN_IF_ERROR(CheckRows(each));
    for (int64_t i = 0; i < each.keys.dim(0); ++i) {
      places[ShardOf(HashKey(each.keys.data<int64_t>()[i]))].push_back({&each, i});
    }
  }
  if (!spec_.ordered()) return places;
  for (std::vector<Place>& own : places) {
    std::stable_sort(own.begin(), own.end(),
                     [](const Place& a, const Place& b) { return a.step() < b.step(); });
  }
  return places;
}

Status DynamicTable::Import(absl::Span<const TableRows> rows, const Caller& caller) {
  ASSIGN_OR_RETURN(std::vector<std::vector<Place>> places, PlacesByShard(rows));
  for (int64_t shard = 0; shard < TableSpec::kShards; ++shard) {
    std::vector<Place>& own = places[shard];
    const int64_t rows_max = spec_.shard_total_max(), count = std::ssize(own);
    const int64_t skipped = rows_max > 0 ? std::max<int64_t>(0, count - rows_max) : 0;
    ASSIGN_OR_RETURN(const ShardRows incoming,
                     CopyToShardRows(absl::MakeConstSpan(own).subspan(skipped), caller.allocator));
    own = {};
    RETURN_IF_ERROR(ImportShard(shard, incoming, caller));
  }
  return OkStatus();
}

Status DynamicTable::Merge(const TableChanges& changes, const std::vector<int64_t>& complete,
                           int64_t buckets, const Caller& caller) {
  ASSIGN_OR_RETURN(std::vector<std::vector<Place>> places, PlacesByShard(changes.rows));
  for (const Tensor& dropped : changes.dropped) RETURN_IF_ERROR(CheckIds(dropped));
  const RowSelection gone = SelectBuckets(complete, buckets);
  std::vector<int64_t> old;  // keys that have rows in the complete buckets
  if (!complete.empty()) {
    const AllShards all(*this, caller.threads);
    all.ForEachRow([&](const TableShard& rows, int32_t row) {
      const int64_t key = rows.header(row).key;
      if (gone.places[BucketOf(key, buckets)] >= 0) old.push_back(key);
    });
  }
  RETURN_IF_ERROR(Erase(Tensor::Vector<int64_t>(old), caller));
  for (const Tensor& dropped : changes.dropped) RETURN_IF_ERROR(Erase(dropped, caller));
  for (int64_t shard = 0; shard < TableSpec::kShards; ++shard) {
    if (places[shard].empty()) continue;
    ASSIGN_OR_RETURN(const ShardRows incoming, CopyToShardRows(places[shard], caller.allocator));
    RETURN_IF_ERROR(PutRows(*shards_[shard], shard, incoming, caller));
  }
  return OkStatus();
}

Status DynamicTable::PutRows(Shard& shard, int64_t number, const ShardRows& incoming,
                             const Caller& caller) {
  const int64_t count = incoming.keys.dim(0), floats = spec_.floats();
  ShardWriterLock lock(shard, caller.threads);
  TableShard& rows = shard.rows;
  RETURN_IF_ERROR(Annotate(rows.Reserve(caller.allocator, count), StrCat("table ", name_)));
  for (int64_t i = 0; i < count; ++i) {
    float* const row =
        rows.PutOrReplace(incoming.keys.data<int64_t>()[i], incoming.updates.data<int64_t>()[i],
                          incoming.steps.data<int64_t>()[i]);
    std::copy_n(incoming.state.data<float>() + i * floats, floats, row);
  }
  Log(caller.origin, kTablePutAction,
      {Value(number), incoming.keys, incoming.state, incoming.updates, incoming.steps});
  rows.Evict(caller.allocator, count);
  return OkStatus();
}

Status DynamicTable::ImportShard(int64_t number, const ShardRows& incoming, const Caller& caller) {
  ASSIGN_OR_RETURN(const ShardRows none, MakeShardRows(0, caller.allocator));
  Shard& shard = *shards_[number];
  ShardWriterLock lock(shard, caller.threads);
  TableShard& rows = shard.rows;
  rows.Clear();
  const Status status = FillShard(rows, incoming, caller.allocator);
  if (!status.ok()) rows.Clear();
  const ShardRows& now = status.ok() ? incoming : none;
  Log(caller.origin, kTableImportAction,
      {Value(number), now.keys, now.state, now.updates, now.steps});
  rows.Evict(caller.allocator, incoming.keys.dim(0));
  return status;
}

Status DynamicTable::FillShard(TableShard& shard, const ShardRows& rows,
                               Allocator& allocator) const {
  const int64_t count = rows.keys.dim(0), floats = spec_.floats();
  // Moves rows beyond the limit to files a few at a time, so that the rows are never all in memory.
  constexpr int64_t kSpilledAtATime = 1024;
  const int64_t reserved = spec_.spills() ? std::min(kSpilledAtATime, count) : count;
  for (int64_t i = 0; i < count; ++i) {
    if (i % reserved == 0) {
      RETURN_IF_ERROR(Annotate(shard.Reserve(allocator, std::min(reserved, count - i)),
                               StrCat("table ", name_)));
    }
    const int64_t key = rows.keys.data<int64_t>()[i];
    float* const row =
        shard.Put(key, rows.updates.data<int64_t>()[i], rows.steps.data<int64_t>()[i]);
    if (row == nullptr) {
      return InvalidArgument("rows for table '", name_, "': key ", key, " comes twice");
    }
    std::copy_n(rows.state.data<float>() + i * floats, floats, row);
  }
  return OkStatus();
}

}  // namespace penstock
