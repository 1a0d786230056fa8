// SPDX-License-Identifier: Apache-2.0
//
// ParseFeatures: parses the features of a batch of records; each key becomes one column.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/parsing/columns.h"
#include "kernels/parsing/example.h"

namespace penstock {

// The features to parse, and their forms. The outputs are in the order of the ops: all sparse
// indices, all sparse values, all sparse shapes, dense values, ragged values, ragged splits.
struct FeatureRequest {
  std::vector<std::string> sparse_keys, dense_keys, ragged_keys;
  std::vector<DType> sparse_types, ragged_types;
  std::vector<DenseColumn> dense;

  int num_outputs() const {
    return static_cast<int>(3 * sparse_keys.size() + dense_keys.size() + 2 * ragged_keys.size());
  }
};

// Calls parse(i) for each row, several at a time. Returns the error of the first row that has one.
Status ForEachRow(const ColumnRows& rows, int64_t count, int64_t nanos, KernelContext& ctx,
                  absl::FunctionRef<Status(int64_t i)> parse);

// Parses `count` records, of which record(i) returns number i, and writes the outputs from output 0
// on. `rows` has the records' names, and says whether the records are a batch. InvalidArgument
// names the first record that does not have the requested form.
Status ParseFeatures(const FeatureRequest& request,
                     absl::FunctionRef<const ExampleRecord&(int64_t i)> record, int64_t count,
                     ColumnRows* rows, KernelContext& ctx);

}  // namespace penstock
