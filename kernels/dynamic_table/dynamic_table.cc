// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/dynamic_table.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/base/thread_pool.h"
#include "kernels/dynamic_table/table_parts.h"

namespace penstock {
namespace {

// Returns the keys of one shard as a tensor. ResourceExhausted if there is no memory.
StatusOr<Tensor> ShardKeyTensor(const ShardKeys& keys, Allocator& allocator) {
  ASSIGN_OR_RETURN(Tensor ids,
                   MakeTableTensor(allocator, DType::kInt64, {std::ssize(keys.positions)}));
  for (int64_t i = 0; i < ids.dim(0); ++i) {
    ids.mutable_data<int64_t>()[i] = keys.keys[keys.positions[i]];
  }
  return ids;
}

}  // namespace

StatusOr<std::shared_ptr<DynamicTable>> DynamicTable::Make(std::string name, const TableSpec& spec,
                                                           Env& files) {
  RETURN_IF_ERROR(spec.Check());
  return std::make_shared<DynamicTable>(std::move(name), spec, files);
}

DynamicTable::DynamicTable(std::string name, const TableSpec& spec, Env& files)
    : name_(std::move(name)), spec_(spec) {
  for (int i = 0; i < TableSpec::kShards; ++i) {
    shards_.push_back(std::make_unique<Shard>(spec_, epochs_, files));
  }
}

std::string DynamicTable::DebugString() const {
  return StrCat(kType, " '", name_, "' float[", spec_.width, "] with ", spec_.slots.size(),
                " slots, ", size(), " rows, of which ", spilled_rows(), " are in files, version ",
                version());
}

int64_t DynamicTable::size() const {
  int64_t size = 0;
  for (const auto& shard : shards_) {
    size += shard->size.load(std::memory_order_relaxed);
  }
  return size;
}

int64_t DynamicTable::spilled_rows() const {
  int64_t rows = 0;
  for (const auto& shard : shards_) {
    rows += shard->spilled_rows.load(std::memory_order_relaxed);
  }
  return rows;
}

Status DynamicTable::CheckIds(const Tensor& ids) const {
  if (ids.dtype() == DType::kInt64 && ids.rank() == 1 &&
      ids.num_elements() <= std::numeric_limits<int32_t>::max()) {
    return OkStatus();
  }
  return InvalidArgument("ids of table '", name_, "' must be a vector of at most 2^31 - 1 int64, ",
                         "are ", Name(ids.dtype()), ids.shape().ToString());
}

Status DynamicTable::FirstError(absl::Span<const Status> results) const {
  for (const Status& result : results) {
    if (!result.ok()) return Annotate(result, StrCat("table ", name_));
  }
  return OkStatus();
}

StatusOr<Tensor> DynamicTable::Pull(const Tensor& ids, const Caller& caller) const {
  RETURN_IF_ERROR(CheckIds(ids));
  ASSIGN_OR_RETURN(Tensor rows,
                   MakeTableTensor(caller.allocator, DType::kFloat, {ids.dim(0), spec_.width}));
  float* const out = rows.mutable_data<float>();
  const KeysByShard keys(ids);
  // The estimated time of a row: a cache miss, which overlaps with other misses, and a copy at 8
  // GB/s.
  const double row_nanos = 30 + static_cast<double>(spec_.width) * sizeof(float) / 8;
  const double shard_nanos =
      row_nanos * static_cast<double>(ids.dim(0)) / static_cast<double>(TableSpec::kShards);
  std::array<Status, TableSpec::kShards> results;
  caller.threads.ParallelFor(TableSpec::kShards, shard_nanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ShardKeys own = keys[i];
      if (own.positions.empty()) continue;
      ShardReaderLock lock(shards_[i]->mu, caller.threads);
      results[i] = shards_[i]->rows.Pull(own, out);
    }
  });
  RETURN_IF_ERROR(FirstError(results));
  return rows;
}

Status DynamicTable::Push(const Tensor& ids, int64_t step, double row_nanos, RowUpdate update,
                          const Caller& caller) {
  RETURN_IF_ERROR(CheckIds(ids));
  const KeysByShard keys(ids);
  const double shard_nanos =
      (60 + row_nanos) * static_cast<double>(ids.dim(0)) / static_cast<double>(TableSpec::kShards);
  // The loop ignores cancellation, because a cancelled step must not leave half an update.
  const WatchedLoops unwatched(nullptr);
  std::array<Status, TableSpec::kShards> results;
  caller.threads.ParallelFor(TableSpec::kShards, shard_nanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ShardKeys own = keys[i];
      if (own.positions.empty()) continue;
      results[i] = PushShard(*shards_[i], own, step, update, caller);
    }
  });
  return FirstError(results);
}

Status DynamicTable::PushShard(Shard& shard, const ShardKeys& keys, int64_t step, RowUpdate update,
                               const Caller& caller) {
  constexpr int64_t kOldRowsMin = 16;
  const int64_t count = std::ssize(keys.positions), floats = spec_.floats();
  Tensor ids, state;  // the record's values, allocated before the rows change
  if (logged()) {
    ASSIGN_OR_RETURN(ids, ShardKeyTensor(keys, caller.allocator));
    ASSIGN_OR_RETURN(state, MakeTableTensor(caller.allocator, DType::kFloat, {count, floats}));
  }
  std::vector<int32_t> updated;
  ShardWriterLock lock(shard, caller.threads);
  TableShard& rows = shard.rows;
  RETURN_IF_ERROR(rows.Push(caller.allocator, keys, step, update, logged() ? &updated : nullptr));
  for (int64_t i = 0; i < std::ssize(updated); ++i) {
    std::copy_n(rows.rows().values(updated[i]), floats, state.mutable_data<float>() + i * floats);
  }
  if (logged()) {
    Log(caller.origin, kTablePushAction, {ids, state.Slice(0, std::ssize(updated)), Value(step)});
  } else {
    Log(caller.origin, kTablePushAction, {});
  }
  rows.Evict(caller.allocator, std::max(kOldRowsMin, count));
  return OkStatus();
}

void DynamicTable::Log(const UpdateOrigin& origin, const char* action, std::vector<Tensor> values) {
  MutexLock lock(log_mu_);
  Changed(origin, action, [&] { return std::move(values); });
}

Status DynamicTable::Erase(const Tensor& ids, const Caller& caller) {
  RETURN_IF_ERROR(CheckIds(ids));
  const KeysByShard keys(ids);
  for (int64_t i = 0; i < TableSpec::kShards; ++i) {
    const ShardKeys own = keys[i];
    if (own.positions.empty()) continue;
    RETURN_IF_ERROR(EraseShard(*shards_[i], own, caller));
  }
  return OkStatus();
}

Status DynamicTable::EraseShard(Shard& shard, const ShardKeys& keys, const Caller& caller) {
  ASSIGN_OR_RETURN(Tensor ids, ShardKeyTensor(keys, caller.allocator));
  ShardWriterLock lock(shard, caller.threads);
  shard.rows.Erase(keys);
  Log(caller.origin, kTableEraseAction, {std::move(ids)});
  return OkStatus();
}

}  // namespace penstock
