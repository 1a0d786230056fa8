// SPDX-License-Identifier: Apache-2.0
//
// Columns: the results of ParseExample and similar ops for one feature of many records: a dense
// tensor, a sparse one, or a ragged one.
//
// A column takes the rows' features (none for a row without the feature) and produces its outputs.
// Errors name the row, the key, what was found and what was expected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "core/tensor/dtype.h"
#include "kernels/parsing/example.h"

namespace penstock {

// The features with one key, one per row.
struct ColumnRows {
  std::string key;
  std::vector<std::optional<Feature>> features;
  // Names of the rows, for errors: strings, one per row, one for all, or none.
  const Tensor* names = nullptr;
  // True: the outputs have a leading dimension for the rows. False: there is one row, and the
  // outputs have no dimension for it.
  bool batched = true;

  int64_t size() const { return static_cast<int64_t>(features.size()); }
  std::string NameOf(int64_t row) const;  // "Name: x"
  Status CheckType(int64_t row, DType expected) const;
};

// The description of the requested dense column. If the first dimension of `shape` is unknown, the
// column has a variable length: rows are padded with the default value to the length of the longest
// row.
struct DenseColumn {
  DType dtype = DType::kInvalid;
  PartialShape shape;
  Tensor default_value;  // if empty, the feature is required

  bool variable_length() const { return shape.rank() > 0 && shape.dim(0) < 0; }
  // Returns the number of elements of one row or, in a column of variable length, of one step.
  int64_t stride() const;
  // Checks the request. InvalidArgument if dtype, shape and default value do not fit together;
  // `index` is the column's index, for the error.
  Status Check(int index) const;
  Status Parse(const ColumnRows& rows, KernelContext& ctx, int output) const;

 private:
  Status ParseFixed(const ColumnRows& rows, KernelContext& ctx, int output) const;
  Status ParseVariable(const ColumnRows& rows, KernelContext& ctx, int output) const;
};

// For shape functions: returns the number of sparse features, attribute `count`. InvalidArgument
// unless attribute `types` has as many elements, so that both imply the same outputs.
StatusOr<int> NumSparse(const ShapeScope& s, string_view count, string_view types);

// The indices of the outputs for indices, values and shape.
struct SparseOutputs {
  int indices, values, shape;
};
Status ParseSparseColumn(const ColumnRows& rows, DType dtype, KernelContext& ctx,
                         SparseOutputs outputs);

// Writes a ragged column. The row splits are int32 or int64, as the node's output type says.
// InvalidArgument if int32 cannot count the values.
Status ParseRaggedColumn(const ColumnRows& rows, DType dtype, KernelContext& ctx, int values,
                         int row_splits);

// The dtypes that features can have.
inline const DTypes kFeatureTypes = {DType::kFloat, DType::kInt64, DType::kString};
Status CheckFeatureType(DType dtype, string_view attr);

}  // namespace penstock
