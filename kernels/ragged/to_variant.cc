// SPDX-License-Identifier: Apache-2.0
//
// RaggedTensorToVariant, and RaggedTensorToVariantGradient: encode a ragged tensor as one variant,
// or its rows as one variant each.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/rows.h"
#include "kernels/ragged/ragged_value.h"
#include "kernels/ragged/row_splits.h"

namespace penstock {
namespace {

Tensor SplitsTensor(DType dtype, const int64_t* splits, int64_t count) {
  Tensor out(dtype, Shape({count}));
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == DType::kInt64) {
      out.mutable_data<int64_t>()[i] = splits[i] - splits[0];
    } else {
      out.mutable_data<int32_t>()[i] = static_cast<int32_t>(splits[i] - splits[0]);
    }
  }
  return out;
}

class ToVariantKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("batched_input", &batched_); }

  Status Compute(KernelContext& ctx) override {
    const int rank = ctx.num_inputs() - 1;  // the number of splits
    const Tensor& values = ctx.input(rank);
    if (rank > 0 && values.rank() == 0) {
      return InvalidArgument("rt_dense_values must be at least a vector, is a scalar");
    }
    const int64_t items = values.rank() == 0 ? 0 : values.dim(0);
    ASSIGN_OR_RETURN(const std::vector<RowSplits> nested, SplitsInputs(ctx, rank, items, true));
    if (!batched_) return Whole(ctx, values);
    if (rank == 0 && values.rank() == 0) return InvalidArgument("Can't unbatch rank-0 tensor.");
    const int64_t rows = rank == 0 ? items : static_cast<int64_t>(nested[0].size()) - 1;
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({rows}), &output));
    for (int64_t row = 0; row < rows; ++row) {
      ASSIGN_OR_RETURN(output->mutable_data<Variant>()[row], Row(ctx, nested, values, row));
    }
    return OkStatus();
  }

 private:
  static Status Whole(KernelContext& ctx, const Tensor& values) {
    std::vector<Tensor> splits;
    for (int i = 0; i < ctx.num_inputs() - 1; ++i) splits.push_back(ctx.input(i));
    ASSIGN_OR_RETURN(const Variant variant, RaggedValue::Of(std::move(splits), values));
    ctx.SetOutput(0, Tensor::Scalar(variant));
    return OkStatus();
  }

  static StatusOr<Variant> Row(KernelContext& ctx, const std::vector<RowSplits>& nested,
                               const Tensor& values, int64_t row) {
    Shape each = values.shape();
    each.RemoveDim(0);
    if (nested.empty()) {
      ASSIGN_OR_RETURN(Tensor value, Rows(ctx, values, row, row + 1, each));
      return RaggedValue::Of({}, std::move(value));
    }
    const DType dtype = ctx.input(0).dtype();
    std::vector<Tensor> splits;
    int64_t begin = nested[0][row], end = nested[0][row + 1];  // the row's items
    for (size_t level = 1; level < nested.size(); ++level) {
      splits.push_back(SplitsTensor(dtype, nested[level].data() + begin, end - begin + 1));
      begin = nested[level][begin];
      end = nested[level][end];
    }
    ASSIGN_OR_RETURN(const Shape shape, WithFirst(end - begin, each));
    ASSIGN_OR_RETURN(Tensor part, Rows(ctx, values, begin, end, shape));
    return RaggedValue::Of(std::move(splits), std::move(part));
  }

  bool batched_ = false;
};

// Joins the values of the variants. A variant that is not set counts as zeros.
class ToVariantGradientKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor &variants = ctx.input(0), &row_splits = ctx.input(1);
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(2), "dense_values_shape"));
    if (variants.rank() > 1) {
      return InvalidArgument("encoded_ragged_grad must be a scalar or a vector, has shape ",
                             variants.shape().ToString());
    }
    RowSplits splits = {0, shape.rank() == 0 ? 1 : shape.dim(0)};
    if (variants.rank() == 1) {
      ASSIGN_OR_RETURN(splits, Splits(row_splits, shape, variants.dim(0)));
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const int64_t items = splits.back();
    const int64_t each = items == 0 ? 0 : shape.num_elements() / items;
    const DType dtype = output->dtype();
    for (int64_t i = 0; i < variants.num_elements(); ++i) {
      const int64_t count = (splits[i + 1] - splits[i]) * each;
      void* const to = ElementAt(output->mutable_raw_data(), dtype, splits[i] * each);
      const Variant& variant = variants.data<Variant>()[i];
      if (variant.value == nullptr) {
        ZeroElements(dtype, to, count);
        continue;
      }
      const auto* part = dynamic_cast<const RaggedValue*>(variant.value.get());
      if (part == nullptr || part->values().dtype() != dtype ||
          part->values().num_elements() != count) {
        return InvalidArgument("encoded_ragged_grad[", i, "] must be a ragged tensor of ", count,
                               " values of type ", Name(dtype), ", is ", variant.value->ToString());
      }
      CopyElements(dtype, part->values().raw_data(), to, count);
    }
    return OkStatus();
  }

  // Returns the range of values of each row. If `tensor` is a scalar, each row is one value.
  // InvalidArgument if the splits do not fit the values.
  static StatusOr<RowSplits> Splits(const Tensor& tensor, const Shape& values, int64_t rows) {
    if (values.rank() == 0) {
      return InvalidArgument("dense_values_shape must have a dimension for the rows");
    }
    RowSplits splits;
    if (tensor.rank() == 0) {
      for (int64_t i = 0; i <= rows; ++i) splits.push_back(i);
    } else {
      ASSIGN_OR_RETURN(const Dims given, IntVector(tensor, "row_splits", rows + 1));
      splits.assign(given.begin(), given.end());
    }
    for (int64_t i = 0; i < rows; ++i) {
      if (splits[i] > splits[i + 1]) return InvalidArgument("row_splits must be sorted");
    }
    if (splits[0] == 0 && splits.back() == values.dim(0)) return splits;
    return InvalidArgument("row_splits must go from 0 to the number of values, ", values.dim(0),
                           "; they go from ", splits[0], " to ", splits.back());
  }
};

Status ToVariantShape(ShapeScope& s) {
  const int rank = s.num_inputs() - 1;
  for (int i = 0; i < rank; ++i) RETURN_IF_ERROR(s.WithRank(i, 1).status());
  ASSIGN_OR_RETURN(const PartialShape values, s.WithRankAtLeast(rank, rank > 0 ? 1 : 0));
  if (!s.attr<bool>("batched_input")) return SetOutput(s, 0, {});
  const PartialShape& outer = rank > 0 ? s.input(0) : values;
  if (outer.known_rank() && outer.rank() == 0) {
    return InvalidArgument("Can't unbatch rank-0 tensor.");
  }
  const int64_t size = outer.known_rank() ? outer.dim(0) : PartialShape::kUnknown;
  return SetOutput(s, 0, {rank > 0 && size > 0 ? size - 1 : size});
}

std::vector<Gradient> ToVariantGradient(const GradientScope& g) {
  const int rank = g.num_inputs() - 1;
  const Output splits = rank == 0 ? g.Const<int64_t>(0) : g.x(0);
  std::vector<Gradient> dx(g.num_inputs());
  dx[rank] = Call("RaggedTensorToVariantGradient", {g.dy(), splits, ShapeOf(g.x(rank))},
                  {{"Tvalues", g.x(rank).dtype()}});
  return dx;
}

Status ToVariantGradientShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 2));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(RaggedTensorToVariant) {
  return {
      .doc =
          "Encodes a ragged tensor as a variant. If batched_input, each row of its outermost "
          "dimension becomes one variant.",
      .inputs = {{"rt_nested_splits", Repeat("RAGGED_RANK", "Tsplits")},
                 {"rt_dense_values", "Tvalues"}},
      .outputs = {{"encoded_ragged", "variant"}},
      .types = {{"Tvalues", kAnyType}, SplitsType()},
      .attrs = {{"RAGGED_RANK", Ints{.min = 0}}, {"batched_input", Bools{}}},
      .shape = ToVariantShape,
      .gradient = ToVariantGradient,
      .examples = {{.inputs = {{{{4}, {0, 3, 3, 5}}}, {{{5}}}},
                    .attrs = {{"batched_input", true}},
                    .check_gradient = false},
                   {.inputs = {{{{3}, {0, 2, 3}}, {{4}, {0, 3, 3, 5}}}, {{{5, 2}}}},
                    .attrs = {{"batched_input", false}},
                    .check_gradient = false}},
  };
}
KERNEL_ANY_TYPE(RaggedTensorToVariant, ToVariantKernel);

OP(RaggedTensorToVariantGradient) {
  return {
      .doc = "The gradient of RaggedTensorToVariant: the values of its variants, as one tensor.",
      .inputs = {{"encoded_ragged_grad", "variant"},
                 {"row_splits", "Tsplits"},
                 {"dense_values_shape", "int32"}},
      .outputs = {{"dense_values_grad", "Tvalues"}},
      .types = {{"Tvalues", kAnyType}, SplitsType()},
      .shape = ToVariantGradientShape,
      .untestable_alone = "needs an encoded ragged tensor: kernels/ragged has its tests",
  };
}
KERNEL_ANY_TYPE(RaggedTensorToVariantGradient, ToVariantGradientKernel);

}  // namespace
}  // namespace penstock
