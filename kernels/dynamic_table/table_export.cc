// SPDX-License-Identifier: Apache-2.0
//
// Exports of a DynamicTable: copies of its rows, or of those that have changed since a mark.
#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/dynamic_table/dynamic_table.h"
#include "kernels/dynamic_table/table_parts.h"

namespace penstock {

DynamicTable::RowSelection DynamicTable::SelectBuckets(absl::Span<const int64_t> wanted,
                                                       int64_t buckets) {
  RowSelection made{.places = std::vector<int>(buckets, -1),
                    .buckets = buckets,
                    .count = static_cast<int>(wanted.size())};
  for (int i = 0; i < made.count; ++i) made.places[wanted[i]] = i;
  return made;
}

StatusOr<std::vector<TableRows>> DynamicTable::Export(absl::Span<const int64_t> wanted,
                                                      int64_t buckets, const Caller& caller) const {
  const AllShards all(*this, caller.threads);
  return CopyRows(all, SelectBuckets(wanted, buckets), caller.allocator);
}

StatusOr<std::vector<TableRows>> DynamicTable::CopyRows(const AllShards& all,
                                                        const RowSelection& wanted,
                                                        Allocator& allocator) const {
  const int64_t width = spec_.width, slots = std::ssize(spec_.slots);
  std::vector<int64_t> counts(wanted.count);
  const auto place_of = [&](const RowHeader& header) {
    return header.epoch > wanted.epoch ? wanted.places[BucketOf(header.key, wanted.buckets)] : -1;
  };
  all.ForEachRow([&](const TableShard& rows, int32_t row) {
    const int to = place_of(rows.header(row));
    if (to >= 0) ++counts[to];
  });
  std::vector<TableRows> copied(wanted.count);
  for (int i = 0; i < wanted.count; ++i) {
    const int64_t n = counts[i];
    TableRows& to = copied[i];
    ASSIGN_OR_RETURN(to.keys, MakeTableTensor(allocator, DType::kInt64, {n}));
    ASSIGN_OR_RETURN(to.values, MakeTableTensor(allocator, DType::kFloat, {n, width}));
    ASSIGN_OR_RETURN(to.slots, MakeTableTensor(allocator, DType::kFloat, {n, slots, width}));
    ASSIGN_OR_RETURN(to.updates, MakeTableTensor(allocator, DType::kInt64, {n}));
    ASSIGN_OR_RETURN(to.steps, MakeTableTensor(allocator, DType::kInt64, {n}));
  }
  std::vector<int64_t> next(wanted.count);
  std::vector<float> scratch(spec_.floats());
  Status status;
  all.ForEachRow([&](const TableShard& rows, int32_t row) {
    const RowHeader& header = rows.header(row);
    const int bucket = place_of(header);
    if (bucket < 0 || !status.ok()) return;
    const auto values = rows.Values(row, scratch.data());
    status = values.status();
    if (!status.ok()) return;
    TableRows& to = copied[bucket];
    const int64_t i = next[bucket]++;
    to.keys.mutable_data<int64_t>()[i] = header.key;
    std::copy_n(*values, width, to.values.mutable_data<float>() + i * width);
    std::copy_n(*values + width, slots * width, to.slots.mutable_data<float>() + i * slots * width);
    to.updates.mutable_data<int64_t>()[i] = header.updates;
    to.steps.mutable_data<int64_t>()[i] = header.step;
  });
  RETURN_IF_ERROR(Annotate(status, StrCat("table ", name_)));
  return copied;
}

// Returns, for each bucket, the keys that were dropped and have no row now, without duplicates.
// ResourceExhausted if there is no memory.
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
    ASSIGN_OR_RETURN(Tensor tensor, MakeTableTensor(allocator, DType::kInt64, {std::ssize(own)}));
    std::copy(own.begin(), own.end(), tensor.mutable_data<int64_t>());
    dropped.push_back(std::move(tensor));
  }
  return dropped;
}

StatusOr<TableChanges> DynamicTable::ExportChanges(absl::Span<const int64_t> wanted,
                                                   int64_t buckets, const std::string& mark,
                                                   const std::string& base_mark,
                                                   const Caller& caller) const {
  RowSelection rows = SelectBuckets(wanted, buckets);
  TableChanges changes;
  const AllShards all(*this, caller.threads);
  const int32_t base = EpochOf(base_mark);
  changes.complete = base < 0 || !all.HasAllDroppedAfter(base);
  if (changes.complete) {
    changes.dropped.assign(wanted.size(), Tensor(DType::kInt64, {0}));
  } else {
    rows.epoch = base;
    ASSIGN_OR_RETURN(changes.dropped, CopyDropped(all, rows, caller.allocator));
  }
  ASSIGN_OR_RETURN(changes.rows, CopyRows(all, rows, caller.allocator));
  AddMark(mark);
  return changes;
}

// Sets the mark and starts a new epoch; does nothing if the mark is empty. The caller holds the
// locks of all shards, so that no row changes meanwhile. Marks are not in the state log: a follower
// that takes over has no marks, so its first export returns all rows.
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

}  // namespace penstock
