// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/cross_columns.h"

#include "kernels/sparse/sparse_tensor.h"

namespace penstock {

StatusOr<FeatureColumn> SparseColumn(const SparseTensor& x, int column_number) {
  if (x.rank() != 2) {
    return InvalidArgument("column ", column_number, " must be a matrix of features, has rank ",
                           x.rank());
  }
  RETURN_IF_ERROR(x.CheckBounds());
  FeatureColumn column{.values = x.values()};
  for (int64_t i = 0; i < x.size();) {
    const int64_t row = x.place(i)[0], begin = i;
    if (!column.rows.empty() && row < column.rows.back()) {
      return InvalidArgument("indices[", i, "] = ", ToString(x.place(i)),
                             " is out of order: rows must ascend");
    }
    while (i < x.size() && x.place(i)[0] == row) ++i;
    column.Add(row, {begin, i});
  }
  return column;
}

StatusOr<FeatureColumn> DenseColumn(const Tensor& values, int column_number) {
  if (values.rank() != 2) {
    return InvalidArgument("Dense inputs should be a matrix but received shape ",
                           values.shape().ToString(), " in column ", column_number);
  }
  FeatureColumn column{.values = values};
  const int64_t width = values.dim(1);
  if (width == 0) return column;
  for (int64_t row = 0; row < values.dim(0); ++row)
    column.Add(row, {row * width, (row + 1) * width});
  return column;
}

StatusOr<FeatureBatch> ReadBatch(const KernelContext& ctx, int num_sparse, int num_inputs) {
  FeatureBatch batch;
  for (int i = 0; i < num_sparse; ++i) {
    ASSIGN_OR_RETURN(const SparseTensor x,
                     SparseTensor::Make(ctx.input(i), ctx.input(num_sparse + i),
                                        ctx.input(2 * num_sparse + i), StrCat("column ", i)));
    ASSIGN_OR_RETURN(FeatureColumn column, SparseColumn(x, i));
    RETURN_IF_ERROR(batch.Add(x.shape()[0], std::move(column)));
  }
  for (int i = 3 * num_sparse; i < num_inputs; ++i) {
    const Tensor& dense = ctx.input(i);
    ASSIGN_OR_RETURN(FeatureColumn column,
                     DenseColumn(dense, static_cast<int>(batch.columns.size())));
    RETURN_IF_ERROR(batch.Add(dense.dim(0), std::move(column)));
  }
  return batch;
}

StatusOr<std::vector<CrossedRow>> CrossedRows(const FeatureBatch& batch) {
  std::vector<CrossedRow> crossed;
  if (batch.columns.empty()) return crossed;
  int64_t total = 0;
  for (const int64_t row : batch.columns[0].rows) {
    CrossedRow each{.row = row};
    for (const FeatureColumn& column : batch.columns) {
      each.features.push_back(column.Of(row));
      const int64_t features = each.features.back().end - each.features.back().begin;
      if (__builtin_mul_overflow(each.count, features, &each.count)) {
        return InvalidArgument("row ", row, " has more combinations than 64 bits can count");
      }
    }
    if (each.count == 0) continue;
    if (__builtin_add_overflow(total, each.count, &total)) {
      return InvalidArgument("there are more combinations than 64 bits can count");
    }
    crossed.push_back(std::move(each));
  }
  return crossed;
}

}  // namespace penstock
