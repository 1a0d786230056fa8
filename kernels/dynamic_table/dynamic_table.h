// SPDX-License-Identifier: Apache-2.0
//
// DynamicTable: rows of floats that are made when their key, any 64-bit number, is first updated.
// Beside each row stand the optimizer's slots of it, the number of its updates, and the step of the
// last one.
//
// Pull changes nothing: a key without a row reads as the row that it would get, or as
// spec.default_value if keys have to be admitted. Push makes rows, updates them, and then drops
// rows that are too many or too old.
//
// Thread-safe. The keys are spread over shards with a lock each: a pull sees every row whole, and
// may see some rows of a concurrent push and not others. An export sees each push of a shard as a
// whole.
//
// Actions in a StateLog, each on one shard: "push" {keys, new rows with slots, step}, where rows
// are those of the keys that were updated, in order; "erase" {keys}; "import" {shard, keys, rows
// with slots, updates, steps}, which replaces the shard; "put" with the same values, which adds
// rows, and replaces those of keys that have one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/op/resource.h"
#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"
#include "kernels/dynamic_table/table_shard.h"
#include "kernels/dynamic_table/table_spec.h"

namespace penstock {

// Rows as checkpoints have them.
struct TableRows {
  Tensor keys;     // int64[n]
  Tensor values;   // float[n, width]
  Tensor slots;    // float[n, slots, width]
  Tensor updates;  // int64[n], from 0 to 2^31 - 1
  Tensor steps;    // int64[n]
};

// The rows of some buckets, or what has changed in them.
struct TableChanges {
  std::vector<TableRows> rows;
  std::vector<Tensor> dropped;  // int64[n]: keys that have no row any more; by bucket
  bool complete = false;        // `rows` are all rows of the buckets, and `dropped` are none
};

// Returns which of `buckets` a key belongs to. The parts of a table hold some buckets each, and a
// checkpoint has the rows of each bucket for itself, so that it restores to any number of parts.
inline int64_t BucketOf(int64_t key, int64_t buckets) {
  return static_cast<int64_t>((HashKey(key) >> 28 & 0xFFFFFFFFu) % static_cast<uint64_t>(buckets));
}

class DynamicTable final : public Resource {
 public:
  static constexpr char kType[] = "DynamicTable";
  using RowUpdate = TableShard::RowUpdate;
  // The memory, threads and step of the kernel that calls.
  struct Caller {
    Allocator& allocator;
    Scheduler& threads;
    UpdateOrigin origin;
  };

  // InvalidArgument if spec.Check() fails.
  static StatusOr<std::shared_ptr<DynamicTable>> Make(std::string name, const TableSpec& spec);
  DynamicTable(std::string name, const TableSpec& spec);

  const char* TypeName() const override { return kType; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override { return spec_.Describe(); }
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  const std::string& name() const { return name_; }
  const TableSpec& spec() const { return spec_; }
  int64_t size() const;

  // Returns float[n, width]. `ids` are an int64 vector, here and below; else InvalidArgument.
  StatusOr<Tensor> Pull(const Tensor& ids, const Caller& caller) const;
  // Calls `update` for each id that has or gets a row, in the order of the ids of a shard; shards
  // may run at the same time. `row_nanos`: the rough cost of one call. ResourceExhausted: there is
  // no memory; each shard has all of its updates, or none. A cancelled step runs it to its end.
  Status Push(const Tensor& ids, int64_t step, double row_nanos, RowUpdate update,
              const Caller& caller);
  // Keys without a row are passed over.
  Status Erase(const Tensor& ids, const Caller& caller);

  // Returns the rows of each of `wanted` buckets of `buckets`, copied at one moment. Pushes wait
  // meanwhile.
  StatusOr<std::vector<TableRows>> Export(absl::Span<const int64_t> wanted, int64_t buckets,
                                          Allocator& allocator) const;
  // As Export, and marks the moment as `mark`. Of the rows, returns those that have changed since
  // `base_mark`, if that is one of the newest kMarks marks, and the keys dropped since are known;
  // else all. Empty: no mark. The table forgets the marks when it gets other rows by Import.
  StatusOr<TableChanges> ExportChanges(absl::Span<const int64_t> wanted, int64_t buckets,
                                       const std::string& mark, const std::string& base_mark,
                                       Allocator& allocator) const ABSL_LOCKS_EXCLUDED(marks_mu_);
  static constexpr size_t kMarks = 4;

  // Replaces all rows; no rows: empties the table. Of rows beyond a limit it keeps those that were
  // updated last. Forgets the counts of keys without a row. InvalidArgument if rows are not of the
  // table's shape; nothing has changed. InvalidArgument if a key comes twice among the rows kept,
  // ResourceExhausted if there is no memory: some shards have their new rows, others are empty or
  // have the old ones.
  Status Import(absl::Span<const TableRows> rows, const Caller& caller);
  // Applies what ExportChanges returned to a table that has the rows of the moment before: drops
  // keys, then adds rows, or replaces those of keys that have one; they count as updated last.
  // `complete`: buckets of `buckets` whose old rows all go. Errors as those of Import.
  Status Merge(const TableChanges& changes, const std::vector<int64_t>& complete, int64_t buckets,
               const Caller& caller);

 private:
  struct Shard {
    Shard(const TableSpec& spec, const TableEpochs& epochs) : rows(spec, epochs) {}
    mutable SharedMutex mu;
    TableShard rows ABSL_GUARDED_BY(mu);
  };
  class KeysByShard;
  class AllShards;

  struct Mark {
    std::string name;
    int32_t epoch;  // the last one before it
  };
  // Selects the rows that an export returns: those changed after `epoch`.
  struct Wanted {
    std::vector<int> places;  // in the result, by bucket; -1: not there
    int64_t buckets = 1;
    int count = 0;  // of places
    int32_t epoch = -1;
  };

  static Wanted WantedBuckets(absl::Span<const int64_t> wanted, int64_t buckets);
  StatusOr<std::vector<TableRows>> CopyRows(const AllShards& all, const Wanted& wanted,
                                            Allocator& allocator) const;
  StatusOr<std::vector<Tensor>> CopyDropped(const AllShards& all, const Wanted& wanted,
                                            Allocator& allocator) const;
  void AddMark(const std::string& mark) const ABSL_LOCKS_EXCLUDED(marks_mu_);
  int32_t EpochOf(const std::string& mark) const ABSL_LOCKS_EXCLUDED(marks_mu_);
  Status CheckIds(const Tensor& ids) const;
  Status CheckRows(const TableRows& rows) const;
  Status PushShard(Shard& shard, const ShardKeys& keys, int64_t step, RowUpdate update,
                   Allocator& allocator, const UpdateOrigin& origin);
  Status EraseShard(Shard& shard, const ShardKeys& keys, Allocator& allocator,
                    const UpdateOrigin& origin);
  // A row to import: number i of `rows`.
  struct Place {
    const TableRows* rows;
    int64_t i;
    int64_t step() const { return rows->steps.data<int64_t>()[i]; }
  };
  // The rows to import of one shard: int64[n], and float[n, values and slots].
  struct Incoming {
    Tensor keys, state, updates, steps;
  };
  StatusOr<Incoming> MakeIncoming(int64_t count, Allocator& allocator) const;
  StatusOr<Incoming> Collect(absl::Span<const Place> places, Allocator& allocator) const;
  StatusOr<std::vector<std::vector<Place>>> PlacesByShard(absl::Span<const TableRows> rows) const;
  Status ImportShard(int64_t number, const Incoming& rows, Allocator& allocator,
                     const UpdateOrigin& origin);
  Status FillShard(TableShard& shard, const Incoming& rows, Allocator& allocator) const;
  Status PutRows(Shard& shard, int64_t number, const Incoming& rows, Allocator& allocator,
                 const UpdateOrigin& origin);
  Status ReplayPush(const class ReplayValues& values, const UpdateOrigin& origin);
  // Replays "import" and "put".
  Status ReplayRows(const class ReplayValues& values, bool replaces, const UpdateOrigin& origin);
  // Records a change of a shard, whose lock the caller holds. `values` are ready: an allocation
  // that failed now would leave a change that no record tells of.
  void Log(const UpdateOrigin& origin, const char* action, std::vector<Tensor> values)
      ABSL_LOCKS_EXCLUDED(log_mu_);

  const std::string name_;
  const TableSpec spec_;
  mutable TableEpochs epochs_;  // raised by exports, which hold the locks of all shards
  std::vector<std::unique_ptr<Shard>> shards_;
  mutable Mutex marks_mu_;  // locked after those of shards
  mutable std::vector<Mark> marks_ ABSL_GUARDED_BY(marks_mu_);  // oldest first
  Mutex log_mu_;  // raises the version; locked after that of a shard
};

}  // namespace penstock
