// SPDX-License-Identifier: Apache-2.0
//
// ListColumn: the result of ParseSequenceExample for one feature list of many records: a dense
// tensor padded to the longest list, a sparse one, or a ragged one.
//
// Make checks the types of all steps. Errors name record, key and step.
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
  // Takes the list with key `key` of each record. `records` has the records' names, and says
  // whether they are a batch. InvalidArgument if a record has no such list, unless `may_miss`.
  static StatusOr<ListColumn> Make(const std::vector<SequenceRecord>& sequences,
                                   const ColumnRows& records, const std::string& key, DType dtype,
                                   bool may_miss);

  // Writes a tensor of shape [records, longest list] + the shape of a step, with zeros after a
  // list's end. `lengths` is the output for the lists' lengths, or -1. InvalidArgument if a step
  // does not have the elements of its shape.
  Status ToDense(const PartialShape& step, KernelContext& ctx, int values, int lengths) const;
  // Writes indices (record, step, position in the step), values and shape.
  Status ToSparse(KernelContext& ctx, SparseOutputs outputs) const;
  // Writes values, outer splits (of records into steps) and inner splits (of steps into values).
  // InvalidArgument if int32 splits cannot count the steps or the values.
  Status ToRagged(KernelContext& ctx, int values, int outer_splits, int inner_splits) const;

 private:
  ListColumn(const ColumnRows& records, DType dtype) : records_(records), dtype_(dtype) {}
  int64_t num_records() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t longest() const;
  Status SetLengths(KernelContext& ctx, int output) const;
  std::string Place(int64_t record, int64_t step) const;

  const ColumnRows& records_;
  const DType dtype_;
  ColumnRows steps_;              // the steps of all records, concatenated
  std::vector<int64_t> lengths_;  // steps of each record
};

}  // namespace penstock
