// SPDX-License-Identifier: Apache-2.0
//
// DynamicTable: maps keys (any 64-bit numbers) to rows of floats. A row is made at the first update
// of its key. With each row the table stores the optimizer's slots, the number of updates, and the
// step of the last update.
//
// Pull changes nothing. For a key without a row it returns the initial values that the row would
// get, or spec.default_value if keys have to be admitted. Push makes rows, updates them, and then
// drops rows beyond the limit and rows that are too old.
//
// If spec.spills(), rows beyond the limit of the memory are kept in files instead. Pull and exports
// read them there; Push brings them back.
//
// Thread-safe. The keys are spread over shards with a lock each: a pull never sees a row half
// updated, but may see only some of the rows of a concurrent push. An export sees all or none of a
// push's changes to a shard. If the table spills, a call may wait for the files of another one; it
// waits through the scheduler of its caller.
//
// Actions in a StateLog, each on one shard: "push" {keys, rows with slots, step}, with the new rows
// of the keys that were updated, in order; "erase" {keys}; "import" {shard, keys, rows with slots,
// updates, steps}, which replaces all rows of the shard; "put" with the same values, which adds
// rows, or replaces them if their key has one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/op/resource.h"
#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"
#include "kernels/dynamic_table/shard_mutex.h"
#include "kernels/dynamic_table/table_shard.h"
#include "kernels/dynamic_table/table_spec.h"

namespace penstock {

// Rows in the form in which checkpoints store them.
struct TableRows {
  Tensor keys;     // int64[n]
  Tensor values;   // float[n, width]
  Tensor slots;    // float[n, slots, width]
  Tensor updates;  // int64[n], from 0 to 2^31 - 1
  Tensor steps;    // int64[n]
};

// All rows of some buckets, or the changes of these rows since an earlier export.
struct TableChanges {
  std::vector<TableRows> rows;
  std::vector<Tensor> dropped;  // int64[n] for each bucket: keys without a row now
  bool complete = false;        // true: `rows` has all rows, and `dropped` is empty
};

// Returns the bucket of a key, from 0 to buckets - 1. Each part of a table holds some buckets. A
// checkpoint stores the rows of each bucket separately, so that it can be restored to a table with
// any number of parts.
inline int64_t BucketOf(int64_t key, int64_t buckets) {
  return static_cast<int64_t>((HashKey(key) >> 28 & 0xFFFFFFFFu) % static_cast<uint64_t>(buckets));
}

class DynamicTable final : public Resource {
 public:
  static constexpr char kType[] = "DynamicTable";
  using RowUpdate = TableShard::RowUpdate;
  // The memory, threads and step of the calling kernel. The table waits through `threads`.
  struct Caller {
    Allocator& allocator;
    Scheduler& threads;
    UpdateOrigin origin;
  };

  // Makes a table. Borrows `files`, where rows are kept if spec.spills(). InvalidArgument if
  // spec.Check() fails.
  static StatusOr<std::shared_ptr<DynamicTable>> Make(std::string name, const TableSpec& spec,
                                                      Env& files);
  DynamicTable(std::string name, const TableSpec& spec, Env& files);

  const char* TypeName() const override { return kType; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override { return spec_.Describe(); }
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  const std::string& name() const { return name_; }
  const TableSpec& spec() const { return spec_; }
  // Return the number of all rows, and the number of rows in files. Changes that are in progress
  // may not be included.
  int64_t size() const;
  int64_t spilled_rows() const;

  // Returns the rows of `ids`, float[n, width]. Here and below, InvalidArgument unless `ids` is an
  // int64 vector; DataLoss, or an error of the file system, if a row in a file cannot be read.
  StatusOr<Tensor> Pull(const Tensor& ids, const Caller& caller) const;
  // Calls `update` for each id that has or gets a row: within a shard in the order of the ids, but
  // for several shards at a time. `row_nanos`: the approximate cost of one call. ResourceExhausted
  // if there is no memory, or no room on the disk for rows beyond the limit of the memory; each
  // shard has then made all of its updates or none. The push is completed even if the step is
  // cancelled meanwhile.
  Status Push(const Tensor& ids, int64_t step, double row_nanos, RowUpdate update,
              const Caller& caller);
  // Drops the rows of `ids`. Ignores keys without a row.
  Status Erase(const Tensor& ids, const Caller& caller);

  // Returns the rows of each of the `wanted` buckets, where `buckets` is the number of all buckets.
  // Pushes wait meanwhile, so that all rows are copied at one point in time. ResourceExhausted if
  // there is no memory.
  StatusOr<std::vector<TableRows>> Export(absl::Span<const int64_t> wanted, int64_t buckets,
                                          const Caller& caller) const;
  // Like Export, and sets the mark `mark` at that point in time; an empty `mark` sets none. Returns
  // only the rows that have changed since `base_mark`, if it is one of the newest kMarks marks and
  // all keys dropped since then are known; else all rows. Import makes the table forget its marks.
  StatusOr<TableChanges> ExportChanges(absl::Span<const int64_t> wanted, int64_t buckets,
                                       const std::string& mark, const std::string& base_mark,
                                       const Caller& caller) const ABSL_LOCKS_EXCLUDED(marks_mu_);
  static constexpr size_t kMarks = 4;

  // Replaces all rows by `rows`, which may be empty. If there are more rows than the limit, keeps
  // the rows that were updated last. Resets the counts of keys without a row. InvalidArgument, with
  // nothing changed, if the rows do not have the table's shape. InvalidArgument if a key occurs
  // twice in the rows that are kept, ResourceExhausted if there is no memory; some shards then have
  // their new rows, and the others are empty or have their old rows.
  Status Import(absl::Span<const TableRows> rows, const Caller& caller);
  // Applies the result of ExportChanges to a table that has the rows of `base_mark`: drops keys,
  // then adds rows, or replaces them if their key has one. The rows count as the last updated.
  // `complete`: the buckets whose old rows are all dropped first; `buckets` is the number of all
  // buckets. Errors as in Import.
  Status Merge(const TableChanges& changes, const std::vector<int64_t>& complete, int64_t buckets,
               const Caller& caller);

 private:
  struct Shard {
    Shard(const TableSpec& spec, const TableEpochs& epochs, Env& files)
        : mu(spec.spills()), rows(spec, epochs, files) {}
    mutable ShardMutex mu;
    TableShard rows ABSL_GUARDED_BY(mu);
    // The sizes of `rows` when a writer last released the lock.
    std::atomic<int64_t> size{0}, spilled_rows{0};
  };
  class ShardWriterLock;
  class KeysByShard;
  class AllShards;

  struct Mark {
    std::string name;
    int32_t epoch;  // the epoch that ended with the mark
  };
  // Selects the rows that an export returns: rows of the wanted buckets that changed after `epoch`.
  struct RowSelection {
    std::vector<int> places;  // index in the result, by bucket; -1 if not wanted
    int64_t buckets = 1;
    int count = 0;  // number of wanted buckets
    int32_t epoch = -1;
  };

  static RowSelection SelectBuckets(absl::Span<const int64_t> wanted, int64_t buckets);
  StatusOr<std::vector<TableRows>> CopyRows(const AllShards& all, const RowSelection& wanted,
                                            Allocator& allocator) const;
  StatusOr<std::vector<Tensor>> CopyDropped(const AllShards& all, const RowSelection& wanted,
                                            Allocator& allocator) const;
  // Adds a mark. This function is const, and does not record the mark in the StateLog, because
  // marks are hints (core/op/resource.h).
  void AddMark(const std::string& mark) const ABSL_LOCKS_EXCLUDED(marks_mu_);
  int32_t EpochOf(const std::string& mark) const ABSL_LOCKS_EXCLUDED(marks_mu_);
  Status CheckIds(const Tensor& ids) const;
  // Returns the first error of the shards, with the table's name.
  Status FirstError(absl::Span<const Status> results) const;
  Status CheckRows(const TableRows& rows) const;
  Status PushShard(Shard& shard, const ShardKeys& keys, int64_t step, RowUpdate update,
                   const Caller& caller);
  Status EraseShard(Shard& shard, const ShardKeys& keys, const Caller& caller);
  // A row to import: row i of `rows`.
  struct Place {
    const TableRows* rows;
    int64_t i;
    int64_t step() const { return rows->steps.data<int64_t>()[i]; }
  };
  // The rows to import to one shard: keys int64[n], and state float[n, values and slots].
  struct ShardRows {
    Tensor keys, state, updates, steps;
  };
  StatusOr<ShardRows> MakeShardRows(int64_t count, Allocator& allocator) const;
  StatusOr<ShardRows> CopyToShardRows(absl::Span<const Place> places, Allocator& allocator) const;
  StatusOr<std::vector<std::vector<Place>>> PlacesByShard(absl::Span<const TableRows> rows) const;
  Status ImportShard(int64_t number, const ShardRows& rows, const Caller& caller);
  Status FillShard(TableShard& shard, const ShardRows& rows, Allocator& allocator) const;
  Status PutRows(Shard& shard, int64_t number, const ShardRows& rows, const Caller& caller);
  Status ReplayPush(const class ReplayValues& values, const UpdateOrigin& origin);
  // Replays the actions "import" and "put".
  Status ReplayRows(const class ReplayValues& values, bool replaces, const UpdateOrigin& origin);
  // Records a change of a shard, whose lock the caller holds. The caller has allocated `values`
  // before the change, because an allocation that failed after it would leave a change without a
  // record.
  void Log(const UpdateOrigin& origin, const char* action, std::vector<Tensor> values)
      ABSL_LOCKS_EXCLUDED(log_mu_);

  const std::string name_;
  const TableSpec spec_;
  mutable TableEpochs epochs_;  // raised by exports, which hold the locks of all shards
  std::vector<std::unique_ptr<Shard>> shards_;
  mutable Mutex marks_mu_;  // locked after the mutexes of shards
  mutable std::vector<Mark> marks_ ABSL_GUARDED_BY(marks_mu_);  // oldest first
  Mutex log_mu_;  // held to raise the version; locked after a shard's mutex
};

}  // namespace penstock
