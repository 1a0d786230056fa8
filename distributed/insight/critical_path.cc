// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/critical_path.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

constexpr size_t kNone = TracedTransfer::kNone;

class Walk {
 public:
  explicit Walk(const TracedRows& rows)
      : rows_(rows), begin_ns_(rows.step().start_ns), now_ns_(rows.step().end_ns) {}

  std::vector<PathSegment> Path() {
    size_t row = LastRow();
    if (row != kNone) {
      AddUntil(EndOf(row), PathSegment::kGap, "after the last node", TaskOf(row));
    }
    while (row != kNone && seen_.insert(row).second) row = AddRow(row);
    AddUntil(begin_ns_, PathSegment::kGap, "before the first node", first_task_);
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  int64_t EndOf(size_t row) const { return rows_.rows()[row].stats->end_ns; }
  std::string TaskOf(size_t row) const { return TaskOfDevice(rows_.DeviceOf(rows_.rows()[row])); }

  // Returns the row that ends last; kNone if there is none. A row of another task may seem to end
  // after the step, because the tasks' clocks differ.
  size_t LastRow() const {
    size_t last = kNone;
    for (size_t i = 0; i < rows_.rows().size(); ++i) {
      if (last == kNone || EndOf(i) > EndOf(last)) last = i;
    }
    return last;
  }

  // Adds the segments of a row and of its wait. Returns the row that it waited for; kNone if there
  // is none.
  size_t AddRow(size_t index) {
    const TracedRow& row = rows_.rows()[index];
    const std::string task = TaskOf(index);
    first_task_ = task;
    if (const TracedTransfer* const transfer = rows_.TransferInto(index)) {
      const std::string from =
          transfer->from.empty() ? "" : StrCat(" from ", ShortTask(TaskOfDevice(transfer->from)));
      // The consumer may have asked for the tensor later than the producer sent it.
      const bool producer_last =
          transfer->send != kNone && transfer->start_ns >= row.stats->start_ns;
      AddUntil(producer_last ? transfer->start_ns : row.stats->start_ns, PathSegment::kTransfer,
               StrCat(transfer->tensor, from), task);
      if (producer_last) return transfer->send;
    } else {
      AddUntil(row.stats->start_ns, row.waits ? PathSegment::kWait : PathSegment::kKernel,
               row.stats->title(), task);
    }
    AddUntil(row.stats->scheduled_ns, PathSegment::kQueueing, row.stats->title(), task);
    const size_t before = rows_.LastInput(index);
    if (before != kNone) AddUntil(EndOf(before), PathSegment::kGap, "between nodes", task);
    return before;
  }

  // Adds a segment that goes back from the current time to `start_ns`.
  void AddUntil(int64_t start_ns, PathSegment::Kind kind, std::string what, std::string task) {
    start_ns = std::max(start_ns, begin_ns_);
    if (start_ns >= now_ns_) return;
    path_.push_back({kind, std::move(what), std::move(task), start_ns, now_ns_});
    now_ns_ = start_ns;
  }

  const TracedRows& rows_;
  const int64_t begin_ns_;
  int64_t now_ns_;
  std::string first_task_;
  absl::flat_hash_set<size_t> seen_;
  std::vector<PathSegment> path_;  // segments, last first
};

}  // namespace

std::vector<PathSegment> CriticalPath(const TracedRows& rows) { return Walk(rows).Path(); }

}  // namespace penstock
