// SPDX-License-Identifier: Apache-2.0
//
// RaggedTensorFromVariant: decodes a ragged tensor from a variant, or stacks the ragged tensors of
// several variants.
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

// The maximum number of rows without elements. Such rows take memory in the splits but none in the
// variants.
constexpr int64_t kEmptyRowsMax = 1 << 24;

int64_t SplitAt(const Tensor& splits, int64_t i) {
  return splits.dtype() == DType::kInt64 ? splits.data<int64_t>()[i] : splits.data<int32_t>()[i];
}

class FromVariantKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("input_ragged_rank", &inner_));
    RETURN_IF_ERROR(node.Attr("output_ragged_rank", &outer_));
    RETURN_IF_ERROR(node.Attr("Tvalues", &values_type_));
    return node.Attr("Tsplits", &splits_type_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& variants = ctx.input(0);
    const int64_t rank = variants.rank();
    const int64_t inner = inner_ == -1 ? outer_ - rank : inner_;
    if (inner < 0 || outer_ != inner + rank) {
      return InvalidArgument(
          "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
          "output_ragged_rank: ",
          outer_, ", input_ragged_rank: ", inner_, ", encoded_ragged.dims(): ", rank);
    }
    std::vector<const RaggedValue*> parts;
    for (const Variant& variant : variants.flat<Variant>()) {
      ASSIGN_OR_RETURN(const RaggedValue* part, Part(variant, parts.size(), inner));
      parts.push_back(part);
    }
    if (rank == 0) {
      for (int i = 0; i < inner; ++i) ctx.SetOutput(i, parts[0]->splits()[i]);
      ctx.SetOutput(static_cast<int>(inner), parts[0]->values());
      return OkStatus();
    }
    return Stack(ctx, variants.shape(), parts, static_cast<int>(inner));
  }

 private:
  StatusOr<const RaggedValue*> Part(const Variant& variant, size_t i, int64_t inner) const {
    const auto* part = dynamic_cast<const RaggedValue*>(variant.value.get());
    if (part == nullptr) {
      return InvalidArgument("encoded_ragged[", i, "] is not an encoded ragged tensor");
    }
    if (static_cast<int64_t>(part->splits().size()) != inner) {
      return InvalidArgument("Encoded input RaggedTensorVariant has ragged_rank=",
                             part->splits().size(), ".  Expected ragged_rank=", inner, ".");
    }
    for (const Tensor& splits : part->splits()) {
      if (splits.dtype() == splits_type_) continue;
      return InvalidArgument("Expected row_splits Tensor dtype: ", Name(splits_type_),
                             ", found: ", Name(splits.dtype()));
    }
    if (part->values().dtype() == values_type_) return part;
    return InvalidArgument("Expected values Tensor dtype: ", Name(values_type_),
                           ", found: ", Name(part->values().dtype()));
  }

  // Writes the splits. The outer splits have the sizes of the dimensions of `shape`, the next
  // splits the number of rows of each part. The inner splits are those of the parts, one part after
  // the other. InvalidArgument if a part has no rows, ResourceExhausted if there are too many empty
  // rows.
  static Status Stack(KernelContext& ctx, const Shape& shape,
                      const std::vector<const RaggedValue*>& parts, int inner) {
    int64_t rows = shape.dim(0);
    if (parts.empty() && rows > kEmptyRowsMax) {
      return ResourceExhausted("encoded_ragged has ", rows, " empty rows, more than ",
                               kEmptyRowsMax);
    }
    for (int d = 1; d < shape.rank(); ++d) {
      RowSplits splits;
      for (int64_t i = 0; i <= rows; ++i) splits.push_back(i * shape.dim(d));
      rows *= shape.dim(d);
      if (parts.empty() && rows > kEmptyRowsMax) {
        return ResourceExhausted("encoded_ragged has more than ", kEmptyRowsMax, " empty rows");
      }
      RETURN_IF_ERROR(WriteSplits(ctx, d - 1, splits));
    }
    RowSplits lengths = {0};
    for (size_t i = 0; i < parts.size(); ++i) {
      const Tensor& items = inner > 0 ? parts[i]->splits()[0] : parts[i]->values();
      if (items.rank() == 0) {
        return InvalidArgument("encoded_ragged[", i, "] is a scalar, which has no rows to stack");
      }
      lengths.push_back(lengths.back() + items.dim(0) - (inner > 0));
    }
    RETURN_IF_ERROR(WriteSplits(ctx, shape.rank() - 1, lengths));
    for (int level = 0; level < inner; ++level) {
      RowSplits splits = {0};
      for (const RaggedValue* part : parts) {
        const Tensor& own = part->splits()[level];
        const int64_t before = splits.back();
        for (int64_t i = 1; i < own.dim(0); ++i) splits.push_back(before + SplitAt(own, i));
      }
      RETURN_IF_ERROR(WriteSplits(ctx, shape.rank() + level, splits));
    }
    return StackValues(ctx, shape.rank() + inner, parts);
  }

  static Status StackValues(KernelContext& ctx, int output,
                            const std::vector<const RaggedValue*>& parts) {
    Shape each;
    int64_t total = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Shape& found = parts[i]->values().shape();
      if (found.rank() == 0) {
        return InvalidArgument("the values of encoded_ragged[", i, "] are a scalar");
      }
      Shape row = found;
      row.RemoveDim(0);
      if (i == 0) each = row;
      if (!(row == each)) {
        return InvalidArgument("All flat_values must have compatible shapes.  Shape at index 0: ",
                               parts[0]->values().shape().ToString(), ".  Shape at index ", i, ": ",
                               found.ToString());
      }
      total += found.dim(0);
    }
    ASSIGN_OR_RETURN(const Shape shape, WithFirst(total, each));
    Tensor* values;
    RETURN_IF_ERROR(ctx.Allocate(output, shape, &values));
    int64_t at = 0;
    for (const RaggedValue* part : parts) {
      CopyElements(values->dtype(), part->values().raw_data(),
                   ElementAt(values->mutable_raw_data(), values->dtype(), at),
                   part->values().num_elements());
      at += part->values().num_elements();
    }
    return OkStatus();
  }

  int64_t inner_ = 0, outer_ = 0;
  DType values_type_ = DType::kInvalid, splits_type_ = DType::kInvalid;
};

Status FromVariantShape(ShapeScope& s) {
  const int64_t inner = s.attr<int64_t>("input_ragged_rank");
  const int64_t outer = s.attr<int64_t>("output_ragged_rank");
  if (inner > outer) {
    return InvalidArgument("output_ragged_rank must be at least input_ragged_rank, ", inner,
                           ", is ", outer);
  }
  if (inner >= 0) RETURN_IF_ERROR(s.WithRank(0, static_cast<int>(outer - inner)).status());
  for (int i = 0; i < outer; ++i) s.set_output(i, PartialShape{PartialShape::kUnknown});
  const PartialShape& variants = s.input(0);
  if (variants.known_rank() && variants.rank() > 0 && variants.dim(0) >= 0 && outer > 0) {
    s.set_output(0, PartialShape{variants.dim(0) + 1});
  }
  return OkStatus();
}

// Returns the gradient of the variants: encodes dy as variants, with the splits that the op has
// output.
std::vector<Gradient> FromVariantGradient(const GradientScope& g) {
  const auto outer = static_cast<int>(g.attr<int64_t>("output_ragged_rank"));
  const auto inner = static_cast<int>(g.attr<int64_t>("input_ragged_rank"));
  const bool batched = inner < 0 ? outer > 0 : outer > inner;
  // Only the splits of the last outer dimension separate the variants.
  const int skipped = inner < 0 || !batched ? 0 : outer - inner - 1;
  Outputs splits;
  for (int i = skipped; i < outer; ++i) splits.push_back(g.y(i));
  const Output encoded = CallN("RaggedTensorToVariant", {splits, g.dy(outer)},
                               {{"batched_input", batched},
                                {"Tsplits", g.attr<EdgeType>("Tsplits").dtype},
                                {"RAGGED_RANK", static_cast<int64_t>(splits.size())}})[0];
  return {Reshape(encoded, ShapeOf(g.x()))};
}

OP(RaggedTensorFromVariant) {
  return {
      .doc =
          "Decodes a ragged tensor from a variant. The ragged tensors of a tensor of variants are "
          "stacked: the dimensions of the tensor of variants become the outer dimensions. If "
          "input_ragged_rank is -1, it is computed from output_ragged_rank.",
      .inputs = {{"encoded_ragged", "variant"}},
      .outputs = {{"output_nested_splits", Repeat("output_ragged_rank", "Tsplits")},
                  {"output_dense_values", "Tvalues"}},
      .types = {{"Tvalues", kAnyType}, SplitsType()},
      .attrs = {{"input_ragged_rank", Ints{.min = -1}}, {"output_ragged_rank", Ints{.min = 0}}},
      .shape = FromVariantShape,
      .gradient = FromVariantGradient,
      .untestable_alone = "needs an encoded ragged tensor: kernels/ragged has its tests",
  };
}
KERNEL_ANY_TYPE(RaggedTensorFromVariant, FromVariantKernel);

}  // namespace
}  // namespace penstock
