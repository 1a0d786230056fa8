// SPDX-License-Identifier: Apache-2.0
//
// RaggedCross: for each row, all combinations of features that take one feature from each column.
// Columns are ragged, sparse or dense matrices of strings or integers.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/ragged/row_splits.h"
#include "kernels/sparse/cross_columns.h"
#include "kernels/sparse/cross_features.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

// The numbers of columns of each kind. The inputs are the ragged columns' values, then their
// splits; the sparse columns' indices, values and shapes; the dense columns.
struct CrossInputs {
  int ragged = 0, sparse = 0, dense = 0;
  int first_sparse() const { return 2 * ragged; }
  int first_dense() const { return 2 * ragged + 3 * sparse; }
};

Status AddRagged(const Tensor& values, const Tensor& row_splits, FeatureBatch* batch) {
  if (values.rank() != 1 || row_splits.rank() != 1) {
    return InvalidArgument("tf.ragged.cross only supports inputs with rank=2.");
  }
  ASSIGN_OR_RETURN(const Dims splits, IntVector(row_splits, "ragged_row_splits"));
  const bool whole =
      !splits.empty() && splits.front() == 0 && splits.back() == values.num_elements();
  if (!whole || !std::is_sorted(splits.begin(), splits.end())) {
    return InvalidArgument("Invalid ragged splits: they must ascend from 0 to the number of ",
                           "values, ", values.num_elements());
  }
  FeatureColumn column{.values = values};
  const auto rows = static_cast<int64_t>(splits.size()) - 1;
  for (int64_t row = 0; row < rows; ++row) {
    if (splits[row] < splits[row + 1]) column.Add(row, {splits[row], splits[row + 1]});
  }
  return batch->Add(rows, std::move(column));
}

// Reads the columns in the order of `order`, which has an 'R', 'S' or 'D' for each column.
// REQUIRES: `order` has as many of each as `inputs`.
StatusOr<FeatureBatch> ReadColumns(const KernelContext& ctx, const CrossInputs& inputs,
                                   const std::string& order) {
  FeatureBatch batch;
  int ragged = 0, sparse = 0, dense = 0;
  for (const char kind : order) {
    const auto number = static_cast<int>(batch.columns.size());
    if (kind == 'R') {
      RETURN_IF_ERROR(AddRagged(ctx.input(ragged), ctx.input(inputs.ragged + ragged), &batch));
      ++ragged;
    } else if (kind == 'S') {
      const int first = inputs.first_sparse() + sparse++;
      ASSIGN_OR_RETURN(
          const SparseTensor x,
          SparseTensor::Make(ctx.input(first), ctx.input(first + inputs.sparse),
                             ctx.input(first + 2 * inputs.sparse), StrCat("column ", number)));
      ASSIGN_OR_RETURN(FeatureColumn column, SparseColumn(x, number));
      RETURN_IF_ERROR(batch.Add(x.shape()[0], std::move(column)));
    } else {
      const Tensor& x = ctx.input(inputs.first_dense() + dense++);
      ASSIGN_OR_RETURN(FeatureColumn column, DenseColumn(x, number));
      RETURN_IF_ERROR(batch.Add(x.dim(0), std::move(column)));
    }
  }
  return batch;
}

class RaggedCrossKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    std::vector<DType> values, splits, sparse, dense;
    DType out;
    bool hashed;
    RETURN_IF_ERROR(node.Attr("Nsparse", &inputs_.sparse));
    RETURN_IF_ERROR(node.Attr("ragged_values_types", &values));
    RETURN_IF_ERROR(node.Attr("ragged_splits_types", &splits));
    RETURN_IF_ERROR(node.Attr("sparse_values_types", &sparse));
    RETURN_IF_ERROR(node.Attr("dense_types", &dense));
    RETURN_IF_ERROR(node.Attr("input_order", &order_));
    RETURN_IF_ERROR(node.Attr("hashed_output", &hashed));
    RETURN_IF_ERROR(node.Attr("num_buckets", &num_buckets_));
    RETURN_IF_ERROR(node.Attr("hash_key", &hash_key_));
    RETURN_IF_ERROR(node.Attr("out_values_type", &out));
    hashed_ = out == DType::kInt64;
    if (hashed != hashed_) {
      return InvalidArgument("out_values_type must be int64 if hashed_output, else string; is ",
                             Name(out));
    }
    if (values.size() != splits.size()) {
      return InvalidArgument("ragged values and splits must have the same length");
    }
    if (sparse.size() != static_cast<size_t>(inputs_.sparse)) {
      return InvalidArgument("sparse indices and values must have the same length");
    }
    inputs_.ragged = static_cast<int>(values.size());
    inputs_.dense = static_cast<int>(dense.size());
    const auto number_of = [&](char kind) {
      return std::count(order_.begin(), order_.end(), kind);
    };
    if (number_of('R') == inputs_.ragged && number_of('S') == inputs_.sparse &&
        number_of('D') == inputs_.dense &&
        order_.size() == values.size() + sparse.size() + dense.size()) {
      return OkStatus();
    }
    return InvalidArgument("Invalid length for input_order: it must have an R for each of the ",
                           inputs_.ragged, " ragged inputs, an S for each of the ", inputs_.sparse,
                           " sparse ones and a D for each of the ", inputs_.dense,
                           " dense ones, is \"", order_, "\"");
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const FeatureBatch batch, ReadColumns(ctx, inputs_, order_));
    ASSIGN_OR_RETURN(const std::vector<CrossedRow> rows, CrossedRows(batch));
    int64_t total = 0;
    for (const CrossedRow& row : rows) total += row.count;
    RETURN_IF_ERROR(WriteRowSplits(ctx, batch.rows, rows));
    Tensor* values;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{total}, &values));
    int64_t at = 0;
    for (const CrossedRow& row : rows) {
      ForEachCombination(row, [&](const std::vector<int64_t>& picks) {
        if (hashed_) {
          values->mutable_data<int64_t>()[at++] =
              HashFeatures(batch.columns, picks, hash_key_, num_buckets_);
        } else {
          values->mutable_data<std::string>()[at++] = JoinFeatures(batch.columns, picks, "_X_");
        }
      });
    }
    return OkStatus();
  }

  // Writes the splits of all rows, of which only `crossed` have combinations. The number of rows is
  // not trusted: a sparse column gives it.
  static Status WriteRowSplits(KernelContext& ctx, int64_t rows,
                               const std::vector<CrossedRow>& crossed) {
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{AddDims(rows, 1)}));
    Tensor* splits;
    RETURN_IF_ERROR(ctx.Allocate(1, shape, &splits));
    const bool wide = splits->dtype() == DType::kInt64;
    int64_t at = 0, total = 0;
    const auto fill_to = [&](int64_t end) {
      if (wide) {
        std::fill(splits->mutable_data<int64_t>() + at, splits->mutable_data<int64_t>() + end,
                  total);
      } else {
        std::fill(splits->mutable_data<int32_t>() + at, splits->mutable_data<int32_t>() + end,
                  static_cast<int32_t>(total));
      }
      at = end;
    };
    for (const CrossedRow& row : crossed) {
      fill_to(row.row + 1);
      total += row.count;
      if (!wide && total > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("a row split of ", total, " does not fit in int32");
      }
    }
    fill_to(rows + 1);
    return OkStatus();
  }

  CrossInputs inputs_;
  std::string order_;
  bool hashed_ = false;
  int64_t num_buckets_ = 0, hash_key_ = 0;
};

Status RaggedCrossShape(ShapeScope& s) {
  RETURN_IF_ERROR(SetOutput(s, 0, {PartialShape::kUnknown}));
  return SetOutput(s, 1, {PartialShape::kUnknown});
}

const DTypes kCrossFeatureTypes = {DType::kInt64, DType::kString};

OP(RaggedCross) {
  return {
      .doc =
          "Returns every combination of the features of each row, as a ragged tensor: the strings "
          "joined by _X_, or a hash of them. input_order has an R, S or D for each column, which "
          "is ragged, sparse or dense.",
      .inputs = {{"ragged_values", List("ragged_values_types")},
                 {"ragged_row_splits", List("ragged_splits_types")},
                 {"sparse_indices", Repeat("Nsparse", "int64")},
                 {"sparse_values", List("sparse_values_types")},
                 {"sparse_shape", Repeat("Nsparse", "int64")},
                 {"dense_inputs", List("dense_types")}},
      .outputs = {{"output_values", "out_values_type"},
                  {"output_row_splits", "out_row_splits_type"}},
      .types = {{"out_values_type", kCrossFeatureTypes}, {"out_row_splits_type", kIndex}},
      .attrs = {{"Nsparse", Ints{.min = 0}},
                {"input_order", Strings{}},
                {"hashed_output", Bools{}},
                {"num_buckets", Ints{.min = 0}},
                {"hash_key", Ints{}},
                {"ragged_values_types", TypeList{.allowed = kCrossFeatureTypes}},
                {"ragged_splits_types", TypeList{.allowed = kIndex}},
                {"sparse_values_types", TypeList{.allowed = kCrossFeatureTypes}},
                {"dense_types", TypeList{.allowed = kCrossFeatureTypes}}},
      .shape = RaggedCrossShape,
      .gradient = NoGradient,
      .untestable_alone =
          "needs lists of types, for which generated examples have no values: kernels/ragged has "
          "its tests",
  };
}
KERNEL_ANY_TYPE(RaggedCross, RaggedCrossKernel);

}  // namespace
}  // namespace penstock
