// SPDX-License-Identifier: Apache-2.0
//
// The feature columns that SparseCross combines, and the combinations of each row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/op/kernel.h"
#include "core/tensor/tensor.h"

namespace penstock {

class SparseTensor;  // kernels/sparse/sparse_tensor.h

// Elements [begin, end) of a column.
struct FeatureRange {
  int64_t begin, end;
};

// A column of features. Contains only rows that have features.
struct FeatureColumn {
  Tensor values;
  std::vector<int64_t> rows;  // ascending
  std::vector<FeatureRange> features;

  void Add(int64_t row, FeatureRange of_row) {
    rows.push_back(row);
    features.push_back(of_row);
  }
  // Returns the features of a row, which may be none.
  FeatureRange Of(int64_t row) const {
    const auto found = std::lower_bound(rows.begin(), rows.end(), row);
    return found != rows.end() && *found == row ? features[found - rows.begin()]
                                                : FeatureRange{0, 0};
  }
};

// Returns the column of a matrix of features, sparse or dense. InvalidArgument unless its rank is
// 2, and the rows of a sparse one ascend. Messages name column_number.
StatusOr<FeatureColumn> SparseColumn(const SparseTensor& x, int column_number);
StatusOr<FeatureColumn> DenseColumn(const Tensor& values, int column_number);

struct FeatureBatch {
  int64_t rows = 0;
  std::vector<FeatureColumn> columns;

  Status Add(int64_t own_rows, FeatureColumn column) {
    if (columns.empty()) rows = own_rows;
    if (own_rows != rows) {
      return InvalidArgument("Expected batch size ", rows, ", got ", own_rows, " in column ",
                             columns.size());
    }
    columns.push_back(std::move(column));
    return OkStatus();
  }
};

// Reads the inputs: N indices, N values, N shapes, then dense matrices; `num_inputs` inputs in all.
// InvalidArgument if a column is not a matrix, or if the columns have different numbers of rows.
StatusOr<FeatureBatch> ReadBatch(const KernelContext& ctx, int num_sparse, int num_inputs);

// A row in which every column has features, and the number of combinations of these features.
struct CrossedRow {
  int64_t row = 0, count = 1;
  std::vector<FeatureRange> features = {};
};

// Returns the rows in which every column has features. InvalidArgument if there are more
// combinations than 64 bits can count.
StatusOr<std::vector<CrossedRow>> CrossedRows(const FeatureBatch& batch);

// Calls visit(picks) for each combination. picks[c] is the index of an element of column c; the
// last column varies fastest.
template <class Visit>
void ForEachCombination(const CrossedRow& row, const Visit& visit) {
  std::vector<int64_t> picks;
  for (const FeatureRange& features : row.features) picks.push_back(features.begin);
  for (int64_t k = 0; k < row.count; ++k) {
    visit(picks);
    for (size_t c = picks.size(); c-- > 0;) {
      if (++picks[c] < row.features[c].end) break;
      picks[c] = row.features[c].begin;
    }
  }
}

}  // namespace penstock
