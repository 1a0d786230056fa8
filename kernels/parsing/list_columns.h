// SPDX-License-Identifier: Apache-2.0
//
// ListColumn: what ParseSequenceExample makes of one feature list of many records: a dense tensor
// padded to the longest list, a sparse one, or a ragged one.
//
// The types of all steps have been checked. Errors name record, key and step.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "kernels/parsing/columns.h"
#include "kernels/parsing/example.h"

namespace penstock {

class ListColumn {
 public:
  // Takes list `key` of each record. `records` names them, and says whether they are a batch.
  // Where a list is missing: an error, unless it `may_miss`.
  static StatusOr<ListColumn> Make(const std::vector<SequenceRecord>& sequences,
                                   const ColumnRows& records, const std::string& key, DType dtype,
                                   bool may_miss);

  // [records, longest list] and the shape of a step; zeros behind a list's end. `lengths` is the
  // output of the lists' lengths, -1 where there is none. Each step must have the elements of its
  // shape.
  Status ToDense(const PartialShape& step, KernelContext& ctx, int values, int lengths) const;
  // Indices are (record, step, place).
  Status ToSparse(KernelContext& ctx, SparseOutputs outputs) const;
  // Outer splits: records into steps; inner: steps into values.
  Status ToRagged(KernelContext& ctx, int values, int outer_splits, int inner_splits) const;

 private:
  ListColumn(const ColumnRows& records, DType dtype) : records_(records), dtype_(dtype) {}
  int64_t num_records() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t longest() const;
  Status SetLengths(KernelContext& ctx, int output) const;
  std::string Place(int64_t record, int64_t step) const;

  const ColumnRows& records_;
  const DType dtype_;
  ColumnRows steps_;              // of all records, one after the other
  std::vector<int64_t> lengths_;  // steps of each record
};

}  // namespace penstock
