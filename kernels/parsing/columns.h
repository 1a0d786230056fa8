// SPDX-License-Identifier: Apache-2.0
//
// Columns: what ParseExample and its kin make of one feature of many records: a dense tensor, a
// sparse one, or a ragged one.
//
// A column takes the rows' features (a missing one as nothing) and produces its outputs. Errors
// name row, key, what was found and what was expected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "kernels/parsing/example.h"

namespace penstock {

// The features of one key in each row.
struct ColumnRows {
  std::string key;
  std::vector<std::optional<Feature>> features;
  const Tensor* names = nullptr;  // strings for errors: of each row, of all, or none
  // Several rows make a leading dimension; one row alone makes none.
  bool batched = true;

  int64_t size() const { return static_cast<int64_t>(features.size()); }
  std::string NameOf(int64_t row) const;  // "Name: x"
  Status CheckType(int64_t row, DType expected) const;
};

// The request for a dense column. It has a variable length if the first dimension of `shape` is
// unknown: rows are then padded with the default to the longest.
struct DenseColumn {
  DType dtype = DType::kInvalid;
  PartialShape shape;
  Tensor default_value;  // empty: a row without the feature is an error

  bool variable_length() const { return shape.rank() > 0 && shape.dim(0) < 0; }
  // The number of elements of one row, or of one step of variable length.
  int64_t stride() const;
  // InvalidArgument if dtype, shape and default do not fit together; `index`: of the column.
  Status Check(int index) const;
  Status Parse(const ColumnRows& rows, KernelContext& ctx, int output) const;

 private:
  Status ParseFixed(const ColumnRows& rows, KernelContext& ctx, int output) const;
  Status ParseVariable(const ColumnRows& rows, KernelContext& ctx, int output) const;
};

// For shape functions: how many sparse features attribute `count` says there are. InvalidArgument
// unless there are as many `types`, so that both mean the same outputs.
StatusOr<int> NumSparse(const ShapeScope& s, string_view count, string_view types);

// Indices, values and shape go to three outputs.
struct SparseOutputs {
  int indices, values, shape;
};
Status ParseSparseColumn(const ColumnRows& rows, DType dtype, KernelContext& ctx,
                         SparseOutputs outputs);

// Row splits are int32 or int64, as the graph says.
Status ParseRaggedColumn(const ColumnRows& rows, DType dtype, KernelContext& ctx, int values,
                         int row_splits);

// The types and shapes of features that there are.
inline constexpr DType kFeatureTypes[] = {DType::kFloat, DType::kInt64, DType::kString};
Status CheckFeatureType(DType dtype, string_view attr);

}  // namespace penstock
