// SPDX-License-Identifier: Apache-2.0
//
// SpilledRows: the rows of one shard of a table that are on disk. Their headers are in memory (with
// the place of the record about 40 bytes a row), so that rows are found, dropped and selected for
// an export without a read. Not thread-safe, but several threads may Read at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/env.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "kernels/dynamic_table/row_blocks.h"
#include "kernels/dynamic_table/row_order.h"
#include "kernels/dynamic_table/spill_segments.h"
#include "kernels/dynamic_table/table_spec.h"

namespace penstock {

class SpilledRows {
 public:
  // The size of a segment. It is limited because Compact copies a whole segment while the shard is
  // locked.
  static constexpr int64_t kSegmentBytes = 32 << 20;

  // Borrows `files`. REQUIRES: spec.spills().
  SpilledRows(const TableSpec& spec, Env& files, int64_t segment_bytes);

  // Adds the rows `rows` of `from`, and returns their numbers in this object. They become the
  // newest rows here, the last of `rows` the newest of all. If this fails, no row is added.
  StatusOr<std::vector<int32_t>> Add(Allocator& allocator, const RowBlocks& from,
                                     absl::Span<const int32_t> rows);
  const RowHeader& header(int32_t row) const { return headers_.header(row); }
  // Copies the values and slots of a row to `values`. DataLoss if the file does not have the values
  // that were written.
  Status Read(int32_t row, float* values) const;
  void Remove(int32_t row);
  void Clear();

  // Copies the rows in use of one segment that is mostly free to another, and closes it. Returns
  // true if it copied a segment. If a row cannot be read, the segment stays where it is, and a
  // later access to that row returns the error.
  bool Compact();

  int64_t size() const { return size_; }
  int32_t oldest() const { return order_.oldest(); }
  int64_t file_bytes() const { return segments_.bytes(); }

 private:
  Status Move(int segment);

  const int64_t floats_;
  Env& files_;
  SpillSegments segments_;
  RowBlocks headers_;  // rows without values
  std::vector<int32_t> places_;
  RowOrder order_;
  int64_t size_ = 0;
};

}  // namespace penstock
