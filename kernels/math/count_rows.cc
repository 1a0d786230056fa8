// SPDX-License-Identifier: Apache-2.0
//
// Ops that count the values in each row of a dense, sparse or ragged tensor: SparseBincount and
// RaggedBincount return a dense tensor of counts, DenseCountSparseOutput, SparseCountSparseOutput
// and RaggedCountSparseOutput a sparse one.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/engine/functor.h"
#include "kernels/math/add.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

#define ROW_COUNT_TYPES int32_t, int64_t, float, double
const DTypes kRowCounts = TypesOf<ROW_COUNT_TYPES>();

enum class RowForm { kDense, kSparse, kRagged };

// Returns the index of the argument `values`.
constexpr int ValuesInput(RowForm form) { return form == RowForm::kDense ? 0 : 1; }
// Returns the number of arguments that describe the rows and the values.
constexpr int NumRowInputs(RowForm form) {
  return form == RowForm::kDense ? 1 : form == RowForm::kSparse ? 3 : 2;
}

struct CountedRows {
  int64_t count = 1;
  bool matrix = false;  // false: a vector, which is one row
  std::vector<int64_t> of_values;
};

StatusOr<CountedRows> DenseRows(const Shape& values) {
  if (values.rank() != 1 && values.rank() != 2) {
    return InvalidArgument("Input must be a 1 or 2-dimensional tensor. Got: ", values.ToString());
  }
  CountedRows rows{.count = values.rank() == 1 ? 1 : values.dim(0), .matrix = values.rank() == 2};
  if (values.num_elements() == 0) return rows;  // there may be more rows than a loop can visit
  for (int64_t row = 0; row < rows.count; ++row) {
    rows.of_values.insert(rows.of_values.end(), values.dim(values.rank() - 1), row);
  }
  return rows;
}

StatusOr<CountedRows> SparseRows(const Tensor& indices, const Tensor& dense_shape, int64_t values) {
  ASSIGN_OR_RETURN(const Shape shape, ShapeVector(dense_shape, "dense_shape"));
  if (shape.rank() < 1 || indices.rank() != 2 || indices.dim(1) != shape.rank()) {
    return InvalidArgument("indices must be a matrix with one column for each dimension of ",
                           shape.ToString(), ", has shape ", indices.shape().ToString());
  }
  if (indices.dim(0) != values) {
    return InvalidArgument("Number of elements in indices (", indices.dim(0), ") and values (",
                           values, ") do not match");
  }
  CountedRows rows{.count = shape.rank() == 1 ? 1 : shape.dim(0), .matrix = shape.rank() > 1};
  const int64_t* index = indices.data<int64_t>();
  for (int64_t i = 0; i < values; ++i, index += shape.rank()) {
    for (int d = 0; d < shape.rank(); ++d) {
      if (index[d] >= 0 && index[d] < shape.dim(d)) continue;
      return InvalidArgument("Sparse index tuple indices[", i, ", :] is out of bounds: ", index[d],
                             " is not in [0, ", shape.dim(d), ")");
    }
    rows.of_values.push_back(rows.matrix ? index[0] : 0);
  }
  return rows;
}

StatusOr<CountedRows> RaggedRows(const Tensor& splits_input, int64_t values) {
  ASSIGN_OR_RETURN(const Dims splits, IntVector(splits_input, "splits"));
  if (splits.empty()) return InvalidArgument("Splits must be non-empty");
  if (splits.front() != 0) {
    return InvalidArgument("Splits must start with 0, not with ", splits.front());
  }
  if (splits.back() != values) {
    return InvalidArgument("Splits must end with the number of values, got ", splits.back(),
                           " instead of ", values);
  }
  CountedRows rows{.count = static_cast<int64_t>(splits.size()) - 1, .matrix = true};
  for (int64_t row = 0; row < rows.count; ++row) {
    if (splits[row + 1] < splits[row]) {
      return InvalidArgument("Splits must not descend: splits[", row + 1, "] = ", splits[row + 1]);
    }
    if (splits[row + 1] > values) {
      return InvalidArgument("Splits must not exceed the number of values, ", values, ": splits[",
                             row + 1, "] = ", splits[row + 1]);
    }
    rows.of_values.insert(rows.of_values.end(), splits[row + 1] - splits[row], row);
  }
  return rows;
}

template <RowForm kForm>
StatusOr<CountedRows> RowsInput(const KernelContext& ctx) {
  const Tensor& values = ctx.input(ValuesInput(kForm));
  if constexpr (kForm == RowForm::kDense) return DenseRows(values.shape());
  if (values.rank() != 1) {
    return InvalidArgument("values must be a vector, has shape ", values.shape().ToString());
  }
  if constexpr (kForm == RowForm::kSparse) {
    return SparseRows(ctx.input(0), ctx.input(2), values.dim(0));
  }
  return RaggedRows(ctx.input(0), values.dim(0));
}

// Calls visit(i, value) for each value, in order. InvalidArgument if a value is negative.
template <class Visit>
Status ForEachValue(const Tensor& values, const Visit& visit) {
  const auto each = [&](const auto* data) -> Status {
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      if (data[i] < 0) {
        return InvalidArgument("Input values must all be non-negative: value ", i, " is ", data[i]);
      }
      visit(i, static_cast<int64_t>(data[i]));
    }
    return OkStatus();
  };
  return values.dtype() == DType::kInt32 ? each(values.data<int32_t>())
                                         : each(values.data<int64_t>());
}

// The base of both kinds of ops: reads the last argument, weights, and the attribute binary_output.
template <class T>
class CountKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("binary_output", &binary_); }

 protected:
  // Returns the weights, or null if each value counts as one.
  StatusOr<const T*> WeightsInput(const KernelContext& ctx, int i, const Tensor& values) const {
    const Tensor& weights = ctx.input(i);
    if (weights.num_elements() == 0) return nullptr;
    if (weights.shape() == values.shape()) return weights.data<T>();
    return InvalidArgument(
        "Weights and values must have the same shape. Weight shape: ", weights.shape().ToString(),
        "; values shape: ", values.shape().ToString());
  }
  void Count(const T* weights, int64_t i, T* count) const {
    *count = binary_ ? T(1) : AddFn()(*count, weights == nullptr ? T(1) : weights[i]);
  }

 private:
  bool binary_ = false;
};

template <class T, RowForm kForm>
class RowBincountKernel final : public CountKernel<T> {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(ValuesInput(kForm));
    ASSIGN_OR_RETURN(const CountedRows rows, RowsInput<kForm>(ctx));
    ASSIGN_OR_RETURN(const int64_t size, IntScalar(ctx.input(NumRowInputs(kForm)), "size"));
    if (size < 0) return InvalidArgument("size (", size, ") must be non-negative");
    ASSIGN_OR_RETURN(const T* const weights,
                     this->WeightsInput(ctx, NumRowInputs(kForm) + 1, values));
    ASSIGN_OR_RETURN(const Shape shape,
                     rows.matrix ? Shape::Make({rows.count, size}) : Shape::Make({size}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    T* const bins = output->template mutable_data<T>();
    std::fill_n(bins, shape.num_elements(), T(0));
    return ForEachValue(values, [&](int64_t i, int64_t value) {
      if (value < size) this->Count(weights, i, bins + rows.of_values[i] * size + value);
    });
  }
};

template <class T, RowForm kForm>
class CountSparseKernel final : public CountKernel<T> {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("minlength", &minlength_));
    RETURN_IF_ERROR(node.Attr("maxlength", &maxlength_));
    return CountKernel<T>::Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(ValuesInput(kForm));
    ASSIGN_OR_RETURN(const CountedRows rows, RowsInput<kForm>(ctx));
    ASSIGN_OR_RETURN(const T* const weights, this->WeightsInput(ctx, NumRowInputs(kForm), values));
    Counts counts;
    int64_t largest = 0;
    RETURN_IF_ERROR(ForEachValue(values, [&](int64_t i, int64_t value) {
      largest = std::max(largest, value);
      if (maxlength_ >= 0 && value >= maxlength_) return;
      this->Count(weights, i, &counts[{rows.of_values[i], value}]);
    }));
    if (largest == std::numeric_limits<int64_t>::max()) {
      return InvalidArgument("value ", largest, " is too large");
    }
    return Write(ctx, rows, counts,
                 maxlength_ >= 0 ? maxlength_ : std::max(largest + 1, minlength_));
  }

 private:
  using Counts = std::map<std::pair<int64_t, int64_t>, T>;  // by row and value

  static Status Write(KernelContext& ctx, const CountedRows& rows, const Counts& counts,
                      int64_t length) {
    const int64_t rank = rows.matrix ? 2 : 1, size = static_cast<int64_t>(counts.size());
    Tensor *indices, *output, *dense_shape;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{size, rank}, &indices));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{size}, &output));
    RETURN_IF_ERROR(ctx.Allocate(2, Shape{rank}, &dense_shape));
    int64_t* index = indices->mutable_data<int64_t>();
    T* to = output->template mutable_data<T>();
    for (const auto& [place, count] : counts) {
      if (rows.matrix) *index++ = place.first;
      *index++ = place.second;
      *to++ = count;
    }
    int64_t* const shape = dense_shape->mutable_data<int64_t>();
    shape[0] = rows.count;
    shape[rank - 1] = length;
    return OkStatus();
  }

  int64_t minlength_ = -1, maxlength_ = -1;
};

// Returns the rank of the dense form of the counts, 1 or 2; kUnknown if it is not known.
template <RowForm kForm>
int64_t CountedRank(const ShapeScope& s) {
  if (kForm == RowForm::kRagged) return 2;
  const PartialShape& input = s.input(kForm == RowForm::kDense ? 0 : 2);
  if (!input.known_rank()) return PartialShape::kUnknown;
  if (kForm == RowForm::kSparse && input.rank() != 1) return PartialShape::kUnknown;
  const int64_t rank = kForm == RowForm::kDense ? input.rank() : input.dim(0);
  return std::min<int64_t>(rank, 2);
}

template <RowForm kForm>
Status RowBincountShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(NumRowInputs(kForm), 0).status());
  ASSIGN_OR_RETURN(const PartialShape first, s.WithRank(0, kForm == RowForm::kRagged ? 1 : 2));
  if (kForm == RowForm::kSparse) RETURN_IF_ERROR(s.WithRank(2, 1).status());
  std::vector<int64_t> size, shape;
  const bool known = s.ConstantInts(NumRowInputs(kForm), &size) && size.size() == 1;
  if (known && size[0] < 0) return InvalidArgument("size (", size[0], ") must be non-negative");
  const int64_t bins = known ? size[0] : PartialShape::kUnknown;
  const int64_t rank = CountedRank<kForm>(s);
  if (rank == 1) {
    s.set_output(0, PartialShape{bins});
  } else if (rank == 2) {
    int64_t rows = PartialShape::kUnknown;
    if (kForm == RowForm::kRagged && first.dim(0) > 0) rows = first.dim(0) - 1;
    if (kForm == RowForm::kSparse && s.ConstantInts(2, &shape) && shape[0] >= 0) rows = shape[0];
    s.set_output(0, PartialShape{rows, bins});
  }
  return OkStatus();
}

template <RowForm kForm>
Status CountSparseShape(ShapeScope& s) {
  if (kForm == RowForm::kSparse) RETURN_IF_ERROR(s.WithRank(2, 1).status());
  const int64_t rank = CountedRank<kForm>(s);
  s.set_output(0, PartialShape{PartialShape::kUnknown, rank});
  s.set_output(1, PartialShape::UnknownOfRank(1));
  s.set_output(2, PartialShape{rank});
  return OkStatus();
}

template <class T>
using SparseBincount = RowBincountKernel<T, RowForm::kSparse>;
template <class T>
using RaggedBincount = RowBincountKernel<T, RowForm::kRagged>;
template <class T>
using DenseCount = CountSparseKernel<T, RowForm::kDense>;
template <class T>
using SparseCount = CountSparseKernel<T, RowForm::kSparse>;
template <class T>
using RaggedCount = CountSparseKernel<T, RowForm::kRagged>;

// Returns the definition of an op with a dense result. `rows` are the arguments before `values`,
// `behind` the arguments after it.
OpDef BincountOp(std::vector<ArgDef> rows, std::vector<ArgDef> behind) {
  OpDef op = {.doc =
                  "Counts how often each integer below `size` occurs in each row. With weights, "
                  "sums their weights instead; with binary_output, returns 1 for each integer that "
                  "occurs.",
              .inputs = std::move(rows),
              .outputs = {{"output", "T"}},
              .types = {{"Tidx", kIndex}, {"T", kRowCounts}},
              .attrs = {{"binary_output", AttrValue(false)}},
              .gradient = NoGradient};
  op.inputs.push_back({"values", "Tidx"});
  for (ArgDef& arg : behind) op.inputs.push_back(std::move(arg));
  op.inputs.push_back({"size", "Tidx"});
  op.inputs.push_back({"weights", "T"});
  return op;
}

// Like BincountOp, for an op with a sparse result.
OpDef CountOp(std::vector<ArgDef> rows, std::vector<ArgDef> behind) {
  OpDef op = {.doc =
                  "Counts how often each integer occurs in each row, as a sparse tensor. With "
                  "weights, sums their weights instead; with binary_output, counts each integer "
                  "once. Integers from maxlength (-1: no limit) on are left out. The result has at "
                  "least minlength columns.",
              .inputs = std::move(rows),
              .outputs = {{"output_indices", "int64"},
                          {"output_values", "output_type"},
                          {"output_dense_shape", "int64"}},
              .types = {{"T", kIndex}, {"output_type", kRowCounts}},
              .attrs = {{"minlength", Ints{.min = -1}, int64_t{-1}},
                        {"maxlength", Ints{.min = -1}, int64_t{-1}},
                        {"binary_output", Bools{}}},
              .gradient = NoGradient};
  op.inputs.push_back({"values", "T"});
  for (ArgDef& arg : behind) op.inputs.push_back(std::move(arg));
  op.inputs.push_back({"weights", "output_type"});
  return op;
}

}  // namespace

OP(SparseBincount) {
  OpDef op = BincountOp({{"indices", "int64"}}, {{"dense_shape", "int64"}});
  op.shape = RowBincountShape<RowForm::kSparse>;
  op.examples = {
      {.inputs = {{{{3, 2}, {0, 0, 0, 2, 2, 1}}},
                  {{{3}, {1, 1, 5}}},
                  {{{2}, {3, 3}}},
                  {{{}, {4}}},
                  {{{3}}}}},
      {.inputs = {{{{3, 1}, {0, 1, 2}}}, {{{3}, {1, 1, 2}}}, {{{1}, {3}}}, {{{}, {4}}}, {{{0}}}},
       .attrs = {{"binary_output", true}}}};
  return op;
}
KERNEL(SparseBincount, SparseBincount, ROW_COUNT_TYPES);

OP(RaggedBincount) {
  OpDef op = BincountOp({{"splits", "int64"}}, {});
  op.shape = RowBincountShape<RowForm::kRagged>;
  op.examples = {{.inputs = {{{{4}, {0, 2, 2, 3}}}, {{{3}, {1, 1, 5}}}, {{{}, {4}}}, {{{3}}}}},
                 {.inputs = {{{{2}, {0, 3}}}, {{{3}, {1, 1, 2}}}, {{{}, {4}}}, {{{0}}}},
                  .attrs = {{"binary_output", true}}}};
  return op;
}
KERNEL(RaggedBincount, RaggedBincount, ROW_COUNT_TYPES);

OP(DenseCountSparseOutput) {
  OpDef op = CountOp({}, {});
  op.shape = CountSparseShape<RowForm::kDense>;
  op.examples = {
      {.inputs = {{{{2, 3}, {1, 1, 5, 0, 2, 0}}}, {{{2, 3}}}}, .attrs = {{"binary_output", false}}},
      {.inputs = {{{{3}, {1, 1, 5}}}, {{{0}}}},
       .attrs = {{"binary_output", true}, {"maxlength", 4}}}};
  return op;
}
KERNEL_BY("output_type", DenseCountSparseOutput, DenseCount, ROW_COUNT_TYPES);

OP(SparseCountSparseOutput) {
  OpDef op = CountOp({{"indices", "int64"}}, {{"dense_shape", "int64"}});
  op.shape = CountSparseShape<RowForm::kSparse>;
  op.examples = {
      {.inputs = {{{{3, 2}, {0, 0, 0, 2, 2, 1}}}, {{{3}, {1, 1, 5}}}, {{{2}, {3, 3}}}, {{{3}}}},
       .attrs = {{"binary_output", false}, {"minlength", 9}}}};
  return op;
}
KERNEL_BY("output_type", SparseCountSparseOutput, SparseCount, ROW_COUNT_TYPES);

OP(RaggedCountSparseOutput) {
  OpDef op = CountOp({{"splits", "int64"}}, {});
  op.shape = CountSparseShape<RowForm::kRagged>;
  op.examples = {{.inputs = {{{{4}, {0, 2, 2, 3}}}, {{{3}, {1, 1, 5}}}, {{{0}}}},
                  .attrs = {{"binary_output", false}}}};
  return op;
}
KERNEL_BY("output_type", RaggedCountSparseOutput, RaggedCount, ROW_COUNT_TYPES);

}  // namespace penstock
