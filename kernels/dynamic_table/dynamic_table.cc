// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/dynamic_table.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/thread_pool.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kPushAction[] = "push", kEraseAction[] = "erase", kImportAction[] = "import",
               kPutAction[] = "put";
constexpr int64_t kUpdatesMax = std::numeric_limits<int32_t>::max();

int ShardOf(uint64_t hash) {
  static_assert(TableSpec::kShards == 16);
  return static_cast<int>(hash >> 60);
}

StatusOr<Tensor> Matrix(Allocator& allocator, DType dtype, const Dims& dims) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  return Tensor::Make(allocator, dtype, shape);
}

// Copies the keys of one shard to a tensor.
StatusOr<Tensor> KeysOf(const ShardKeys& keys, Allocator& allocator) {
  ASSIGN_OR_RETURN(Tensor ids, Matrix(allocator, DType::kInt64, {std::ssize(keys.positions)}));
  for (int64_t i = 0; i < ids.dim(0); ++i) {
    ids.mutable_data<int64_t>()[i] = keys.keys[keys.positions[i]];
  }
  return ids;
}

}  // namespace

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

// Holds the locks of all shards for reading. (The thread-safety analysis does not support locks in
// a loop.)
class DynamicTable::AllShards {
 public:
  explicit AllShards(const DynamicTable& table) ABSL_NO_THREAD_SAFETY_ANALYSIS : table_(table) {
    for (const auto& shard : table.shards_) shard->mu.ReaderLock();
  }
  ~AllShards() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& shard : table_.shards_) shard->mu.ReaderUnlock();
  }
  AllShards(const AllShards&) = delete;
  AllShards& operator=(const AllShards&) = delete;

  // Calls fn(rows, row) for each row.
  template <class Fn>
  void ForEachRow(Fn fn) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& shard : table_.shards_) {
      const TableShard& rows = shard->rows;
      const RowBlocks& blocks = rows.rows();
      rows.ForEachRow([&](int32_t row) { fn(blocks, row); });
    }
  }
  // Returns whether every shard knows all keys that it dropped after `epoch`.
  bool KnowsDropped(int32_t epoch) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& shard : table_.shards_) {
      if (!shard->rows.dropped().Knows(epoch)) return false;
    }
    return true;
  }
  // Calls fn(key) for each key dropped after `epoch`; a key may come several times.
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

StatusOr<std::shared_ptr<DynamicTable>> DynamicTable::Make(std::string name,
                                                           const TableSpec& spec) {
  RETURN_IF_ERROR(spec.Check());
  return std::make_shared<DynamicTable>(std::move(name), spec);
}

DynamicTable::DynamicTable(std::string name, const TableSpec& spec)
    : name_(std::move(name)), spec_(spec) {
  for (int i = 0; i < TableSpec::kShards; ++i) {
    shards_.push_back(std::make_unique<Shard>(spec_, epochs_));
  }
}

std::string DynamicTable::DebugString() const {
  return StrCat(kType, " '", name_, "' float[", spec_.width, "] with ", spec_.slots.size(),
                " slots, ", size(), " rows, version ", version());
}

int64_t DynamicTable::size() const {
  int64_t size = 0;
  for (const auto& shard : shards_) {
    ReaderMutexLock lock(shard->mu);
    size += shard->rows.size();
  }
  return size;
}

Status DynamicTable::CheckIds(const Tensor& ids) const {
  if (ids.dtype() == DType::kInt64 && ids.rank() == 1 &&
      ids.num_elements() <= std::numeric_limits<int32_t>::max()) {
    return OkStatus();
  }
  return InvalidArgument("ids of table '", name_, "' must be a vector of at most 2^31 - 1 int64, ",
                         "are ", Name(ids.dtype()), ids.shape().ToString());
}

StatusOr<Tensor> DynamicTable::Pull(const Tensor& ids, const Caller& caller) const {
  RETURN_IF_ERROR(CheckIds(ids));
  ASSIGN_OR_RETURN(Tensor rows, Matrix(caller.allocator, DType::kFloat, {ids.dim(0), spec_.width}));
  float* const out = rows.mutable_data<float>();
  const KeysByShard keys(ids);
  // Estimates a cache miss, which overlaps with others, and a copy at 8 GB/s.
  const double row_nanos = 30 + static_cast<double>(spec_.width) * sizeof(float) / 8;
  const double shard_nanos =
      row_nanos * static_cast<double>(ids.dim(0)) / static_cast<double>(TableSpec::kShards);
  caller.threads.ParallelFor(TableSpec::kShards, shard_nanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ShardKeys own = keys[i];
      if (own.positions.empty()) continue;
      ReaderMutexLock lock(shards_[i]->mu);
      shards_[i]->rows.Pull(own, out);
    }
  });
  return rows;
}

Status DynamicTable::Push(const Tensor& ids, int64_t step, double row_nanos, RowUpdate update,
                          const Caller& caller) {
  RETURN_IF_ERROR(CheckIds(ids));
  const KeysByShard keys(ids);
  const double shard_nanos =
      (60 + row_nanos) * static_cast<double>(ids.dim(0)) / static_cast<double>(TableSpec::kShards);
  const WatchedLoops unwatched(nullptr);  // a cancelled step must not leave half an update
  std::array<Status, TableSpec::kShards> results;
  caller.threads.ParallelFor(TableSpec::kShards, shard_nanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ShardKeys own = keys[i];
      if (own.positions.empty()) continue;
      results[i] = PushShard(*shards_[i], own, step, update, caller.allocator, caller.origin);
    }
  });
  for (const Status& result : results) RETURN_IF_ERROR(Annotate(result, StrCat("table ", name_)));
  return OkStatus();
}

Status DynamicTable::PushShard(Shard& shard, const ShardKeys& keys, int64_t step, RowUpdate update,
                               Allocator& allocator, const UpdateOrigin& origin) {
  constexpr int64_t kOldRowsMin = 16;
  const int64_t count = std::ssize(keys.positions), floats = spec_.floats();
  Tensor ids, state;  // of the record; allocated before the rows change
  if (logged()) {
    ASSIGN_OR_RETURN(ids, KeysOf(keys, allocator));
    ASSIGN_OR_RETURN(state, Matrix(allocator, DType::kFloat, {count, floats}));
  }
  std::vector<int32_t> updated;
  WriterMutexLock lock(shard.mu);
  TableShard& rows = shard.rows;
  RETURN_IF_ERROR(rows.Push(allocator, keys, step, update, logged() ? &updated : nullptr));
  for (int64_t i = 0; i < std::ssize(updated); ++i) {
    std::copy_n(rows.rows().values(updated[i]), floats, state.mutable_data<float>() + i * floats);
  }
  if (logged()) {
    Log(origin, kPushAction, {ids, state.Slice(0, std::ssize(updated)), Value(step)});
  } else {
    Log(origin, kPushAction, {});
  }
  rows.Evict(std::max(kOldRowsMin, count));
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
    RETURN_IF_ERROR(EraseShard(*shards_[i], own, caller.allocator, caller.origin));
  }
  return OkStatus();
}

Status DynamicTable::EraseShard(Shard& shard, const ShardKeys& keys, Allocator& allocator,
                                const UpdateOrigin& origin) {
  ASSIGN_OR_RETURN(Tensor ids, KeysOf(keys, allocator));
  WriterMutexLock lock(shard.mu);
  shard.rows.Erase(keys);
  Log(origin, kEraseAction, {std::move(ids)});
  return OkStatus();
}

DynamicTable::RowSelection DynamicTable::SelectBuckets(absl::Span<const int64_t> wanted,
                                                       int64_t buckets) {
  RowSelection made{.places = std::vector<int>(buckets, -1),
                    .buckets = buckets,
                    .count = static_cast<int>(wanted.size())};
  for (int i = 0; i < made.count; ++i) made.places[wanted[i]] = i;
  return made;
}

StatusOr<std::vector<TableRows>> DynamicTable::Export(absl::Span<const int64_t> wanted,
                                                      int64_t buckets, Allocator& allocator) const {
  const AllShards all(*this);
  return CopyRows(all, SelectBuckets(wanted, buckets), allocator);
}

StatusOr<std::vector<TableRows>> DynamicTable::CopyRows(const AllShards& all,
                                                        const RowSelection& wanted,
                                                        Allocator& allocator) const {
  const int64_t width = spec_.width, slots = std::ssize(spec_.slots);
  std::vector<int64_t> counts(wanted.count);
  const auto place_of = [&](const RowHeader& header) {
    return header.epoch > wanted.epoch ? wanted.places[BucketOf(header.key, wanted.buckets)] : -1;
  };
  all.ForEachRow([&](const RowBlocks& rows, int32_t row) {
    const int to = place_of(rows.header(row));
    if (to >= 0) ++counts[to];
  });
  std::vector<TableRows> copied(wanted.count);
  for (int i = 0; i < wanted.count; ++i) {
    const int64_t n = counts[i];
    TableRows& to = copied[i];
    ASSIGN_OR_RETURN(to.keys, Matrix(allocator, DType::kInt64, {n}));
    ASSIGN_OR_RETURN(to.values, Matrix(allocator, DType::kFloat, {n, width}));
    ASSIGN_OR_RETURN(to.slots, Matrix(allocator, DType::kFloat, {n, slots, width}));
    ASSIGN_OR_RETURN(to.updates, Matrix(allocator, DType::kInt64, {n}));
    ASSIGN_OR_RETURN(to.steps, Matrix(allocator, DType::kInt64, {n}));
  }
  std::vector<int64_t> next(wanted.count);
  all.ForEachRow([&](const RowBlocks& rows, int32_t row) {
    const RowHeader& header = rows.header(row);
    const int bucket = place_of(header);
    if (bucket < 0) return;
    TableRows& to = copied[bucket];
    const int64_t i = next[bucket]++;
    to.keys.mutable_data<int64_t>()[i] = header.key;
    std::copy_n(rows.values(row), width, to.values.mutable_data<float>() + i * width);
    std::copy_n(rows.values(row) + width, slots * width,
                to.slots.mutable_data<float>() + i * slots * width);
    to.updates.mutable_data<int64_t>()[i] = header.updates;
    to.steps.mutable_data<int64_t>()[i] = header.step;
  });
  return copied;
}

// Returns, for each bucket, the keys that were dropped and have no row now, without duplicates.
StatusOr<std::vector<Tensor>> DynamicTable::CopyDropped(const AllShards& all,
                                                        const RowSelection& wanted,
                                                        Allocator& allocator) const {
  std::vector<std::vector<int64_t>> keys(wanted.count);
  all.ForEachDropped(wanted.epoch, [&](int64_t key) {
    const int to = wanted.places[BucketOf(key, wanted.buckets)];
    if (to >= 0 && !all.HasRow(key)) keys[to].push_back(key);
  });
  std::vector<Tensor> dropped;
  for (std::vector<int64_t>& own : keys) {
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    ASSIGN_OR_RETURN(Tensor tensor, Matrix(allocator, DType::kInt64, {std::ssize(own)}));
    std::copy(own.begin(), own.end(), tensor.mutable_data<int64_t>());
    dropped.push_back(std::move(tensor));
  }
  return dropped;
}

StatusOr<TableChanges> DynamicTable::ExportChanges(absl::Span<const int64_t> wanted,
                                                   int64_t buckets, const std::string& mark,
                                                   const std::string& base_mark,
                                                   Allocator& allocator) const {
  RowSelection rows = SelectBuckets(wanted, buckets);
  TableChanges changes;
  const AllShards all(*this);
  const int32_t base = EpochOf(base_mark);
  changes.complete = base < 0 || !all.KnowsDropped(base);
  if (changes.complete) {
    changes.dropped.assign(wanted.size(), Tensor(DType::kInt64, {0}));
  } else {
    rows.epoch = base;
    ASSIGN_OR_RETURN(changes.dropped, CopyDropped(all, rows, allocator));
  }
  ASSIGN_OR_RETURN(changes.rows, CopyRows(all, rows, allocator));
  AddMark(mark);
  return changes;
}

// Starts a new epoch. The caller holds the locks of all shards, so that no row changes meanwhile.
// Marks are not in the state log: a follower that takes over knows none, so its first export is of
// all rows.
void DynamicTable::AddMark(const std::string& mark) const {
  if (mark.empty()) return;
  MutexLock lock(marks_mu_);
  std::erase_if(marks_, [&](const Mark& old) { return old.name == mark; });
  if (marks_.size() == kMarks) marks_.erase(marks_.begin());
  marks_.push_back({mark, epochs_.now++});
  epochs_.oldest = marks_.front().epoch;
}

// Returns the epoch that ended with the mark, or -1 if there is no such mark.
int32_t DynamicTable::EpochOf(const std::string& mark) const {
  MutexLock lock(marks_mu_);
  const auto at = std::find_if(marks_.begin(), marks_.end(),
                               [&](const Mark& each) { return each.name == mark; });
  return at == marks_.end() ? -1 : at->epoch;
}

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
    if (updates < 0 || updates > kUpdatesMax) {
      return InvalidArgument("rows for table '", name_, "': updates must be from 0 to ",
                             kUpdatesMax, ", are ", updates);
    }
  }
  return OkStatus();
}

StatusOr<DynamicTable::ShardRows> DynamicTable::MakeShardRows(int64_t count,
                                                              Allocator& allocator) const {
  ShardRows made;
  ASSIGN_OR_RETURN(made.keys, Matrix(allocator, DType::kInt64, {count}));
  ASSIGN_OR_RETURN(made.state, Matrix(allocator, DType::kFloat, {count, spec_.floats()}));
  ASSIGN_OR_RETURN(made.updates, Matrix(allocator, DType::kInt64, {count}));
  ASSIGN_OR_RETURN(made.steps, Matrix(allocator, DType::kInt64, {count}));
  return made;
}

// Copies the rows of one shard to adjacent memory.
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
// updates, the row that was updated first comes first.
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
    const int64_t rows_max = spec_.shard_rows_max(), count = std::ssize(own);
    const int64_t skipped = rows_max > 0 ? std::max<int64_t>(0, count - rows_max) : 0;
    ASSIGN_OR_RETURN(const ShardRows incoming,
                     CopyToShardRows(absl::MakeConstSpan(own).subspan(skipped), caller.allocator));
    own = {};
    RETURN_IF_ERROR(ImportShard(shard, incoming, caller.allocator, caller.origin));
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
    const AllShards all(*this);
    all.ForEachRow([&](const RowBlocks& rows, int32_t row) {
      const int64_t key = rows.header(row).key;
      if (gone.places[BucketOf(key, buckets)] >= 0) old.push_back(key);
    });
  }
  RETURN_IF_ERROR(Erase(Tensor::Vector<int64_t>(old), caller));
  for (const Tensor& dropped : changes.dropped) RETURN_IF_ERROR(Erase(dropped, caller));
  for (int64_t shard = 0; shard < TableSpec::kShards; ++shard) {
    if (places[shard].empty()) continue;
    ASSIGN_OR_RETURN(const ShardRows incoming, CopyToShardRows(places[shard], caller.allocator));
    RETURN_IF_ERROR(
        PutRows(*shards_[shard], shard, incoming, caller.allocator, caller.origin));
  }
  return OkStatus();
}

Status DynamicTable::PutRows(Shard& shard, int64_t number, const ShardRows& incoming,
                             Allocator& allocator, const UpdateOrigin& origin) {
  const int64_t count = incoming.keys.dim(0), floats = spec_.floats();
  WriterMutexLock lock(shard.mu);
  TableShard& rows = shard.rows;
  RETURN_IF_ERROR(Annotate(rows.Reserve(allocator, count), StrCat("table ", name_)));
  for (int64_t i = 0; i < count; ++i) {
    float* const row = rows.PutOrReplace(incoming.keys.data<int64_t>()[i],
                                         incoming.updates.data<int64_t>()[i],
                                         incoming.steps.data<int64_t>()[i]);
    std::copy_n(incoming.state.data<float>() + i * floats, floats, row);
  }
  Log(origin, kPutAction,
      {Value(number), incoming.keys, incoming.state, incoming.updates, incoming.steps});
  rows.Evict(count);
  return OkStatus();
}

Status DynamicTable::ImportShard(int64_t number, const ShardRows& incoming, Allocator& allocator,
                                 const UpdateOrigin& origin) {
  ASSIGN_OR_RETURN(const ShardRows none, MakeShardRows(0, allocator));
  Shard& shard = *shards_[number];
  WriterMutexLock lock(shard.mu);
  TableShard& rows = shard.rows;
  rows.Clear();
  const Status status = FillShard(rows, incoming, allocator);
  if (!status.ok()) rows.Clear();
  const ShardRows& now = status.ok() ? incoming : none;
  Log(origin, kImportAction, {Value(number), now.keys, now.state, now.updates, now.steps});
  rows.Evict(incoming.keys.dim(0));
  return status;
}

Status DynamicTable::FillShard(TableShard& shard, const ShardRows& rows,
                               Allocator& allocator) const {
  const int64_t count = rows.keys.dim(0), floats = spec_.floats();
  RETURN_IF_ERROR(shard.Reserve(allocator, count));
  for (int64_t i = 0; i < count; ++i) {
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
  RETURN_IF_ERROR(PushShard(*shards_[shard], own, step, update, CpuAllocator(), origin));
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
                      updates <= kUpdatesMax;
    if (!good) return values.Error("a row is of another shard, or has a wrong number of updates");
  }
  if (replaces) return ImportShard(shard, incoming, CpuAllocator(), origin);
  return PutRows(*shards_[shard], shard, incoming, CpuAllocator(), origin);
}

Status DynamicTable::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  if (change.action == kPushAction) return ReplayPush(values, origin);
  if (change.action == kImportAction) return ReplayRows(values, /*replaces=*/true, origin);
  if (change.action == kPutAction) return ReplayRows(values, /*replaces=*/false, origin);
  if (change.action != kEraseAction) return values.UnknownAction();
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
  return EraseShard(*shards_[shard], keys[shard], CpuAllocator(), origin);
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeTable(const std::string& name, const ReplayValues& values) {
  ASSIGN_OR_RETURN(const TableSpec spec, TableSpec::FromValues(values));
  return std::shared_ptr<Resource>(std::make_shared<DynamicTable>(name, spec));
}

const ResourceMakerDeclaration maker(DynamicTable::kType, MakeTable);

}  // namespace

}  // namespace penstock
