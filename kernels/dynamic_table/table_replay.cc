// SPDX-License-Identifier: Apache-2.0
//
// Replay of the records of a DynamicTable in a StateLog. The records are not trusted.
#include <algorithm>
#include <iterator>
#include <memory>

#include "core/op/state_replay.h"
#include "kernels/dynamic_table/dynamic_table.h"
#include "kernels/dynamic_table/table_parts.h"

namespace penstock {
namespace {

// No step uses a table while it is replayed (StateReplayer), so a replay does not wait for locks.
DynamicTable::Caller ReplayCaller(const UpdateOrigin& origin) {
  return {CpuAllocator(), Scheduler::Real(), origin};
}

}  // namespace

Status DynamicTable::ReplayPush(const ReplayValues& values, const UpdateOrigin& origin) {
  RETURN_IF_ERROR(values.Expect(3));
  const Tensor &ids = values.Get(0), &state = values.Get(1);
  RETURN_IF_ERROR(CheckIds(ids));
  const int64_t floats = spec_.floats();
  if (state.dtype() != DType::kFloat || state.rank() != 2 || state.dim(1) != floats) {
    return values.Error(StrCat("rows must be float[?, ", floats, "], are ", Name(state.dtype()),
                               state.shape().ToString()));
  }
  ASSIGN_OR_RETURN(const int64_t step, values.Int(2));
  const KeysByShard keys(ids);
  const int shard = ids.dim(0) > 0 ? ShardOf(HashKey(ids.data<int64_t>()[0])) : 0;
  const ShardKeys own = keys[shard];
  if (std::ssize(own.positions) != ids.dim(0)) {
    return values.Error("the keys must be of one shard");
  }
  int64_t next = 0;
  const auto update = [&](int32_t, float* row, int64_t) {
    if (next < state.dim(0)) std::copy_n(state.data<float>() + next * floats, floats, row);
    ++next;
  };
  RETURN_IF_ERROR(PushShard(*shards_[shard], own, step, update, ReplayCaller(origin)));
  if (next == state.dim(0)) return OkStatus();
  return values.Error(StrCat(state.dim(0), " rows, but ", next, " keys have one"));
}

Status DynamicTable::ReplayRows(const ReplayValues& values, bool replaces,
                                const UpdateOrigin& origin) {
  RETURN_IF_ERROR(values.Expect(5));
  ASSIGN_OR_RETURN(const int64_t shard, values.Int(0));
  const Tensor &keys = values.Get(1), &state = values.Get(2);
  RETURN_IF_ERROR(CheckIds(keys));
  const int64_t n = keys.dim(0), floats = spec_.floats();
  const auto numbers = [n](const Tensor& tensor) {
    return tensor.dtype() == DType::kInt64 && tensor.shape() == Shape({n});
  };
  const bool fits = shard >= 0 && shard < TableSpec::kShards && state.dtype() == DType::kFloat &&
                    state.shape() == Shape({n, floats}) && numbers(values.Get(3)) &&
                    numbers(values.Get(4));
  if (!fits) return values.Error("the values are not the rows of a shard");
  const ShardRows incoming{
      .keys = keys, .state = state, .updates = values.Get(3), .steps = values.Get(4)};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t updates = incoming.updates.data<int64_t>()[i];
    const bool good = ShardOf(HashKey(keys.data<int64_t>()[i])) == shard && updates >= 0 &&
                      updates <= kTableUpdatesMax;
    if (!good) return values.Error("a row is of another shard, or has a wrong number of updates");
  }
  if (replaces) return ImportShard(shard, incoming, ReplayCaller(origin));
  return PutRows(*shards_[shard], shard, incoming, ReplayCaller(origin));
}

Status DynamicTable::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  if (change.action == kTablePushAction) return ReplayPush(values, origin);
  if (change.action == kTableImportAction) return ReplayRows(values, /*replaces=*/true, origin);
  if (change.action == kTablePutAction) return ReplayRows(values, /*replaces=*/false, origin);
  if (change.action != kTableEraseAction) return values.UnknownAction();
  RETURN_IF_ERROR(values.Expect(1));
  const Tensor& ids = values.Get(0);
  RETURN_IF_ERROR(CheckIds(ids));
  for (const int64_t id : ids.flat<int64_t>()) {
    if (ShardOf(HashKey(id)) != ShardOf(HashKey(ids.data<int64_t>()[0]))) {
      return values.Error("the keys must be of one shard");
    }
  }
  if (ids.dim(0) == 0) return values.Error("there are no keys");
  const KeysByShard keys(ids);
  const int shard = ShardOf(HashKey(ids.data<int64_t>()[0]));
  return EraseShard(*shards_[shard], keys[shard], ReplayCaller(origin));
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeReplayedTable(const std::string& name,
                                                      const ReplayValues& values, Env& files) {
  ASSIGN_OR_RETURN(const TableSpec spec, TableSpec::FromValues(values));
  return std::shared_ptr<Resource>(std::make_shared<DynamicTable>(name, spec, files));
}

const ResourceMakerDeclaration table_maker(DynamicTable::kType, MakeReplayedTable);

}  // namespace

}  // namespace penstock
