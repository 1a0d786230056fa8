// SPDX-License-Identifier: Apache-2.0
//
// ReduceJoin: joins the strings of a tensor along dimensions.
#include "absl/strings/str_join.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// With several axes, the first one in the list varies fastest; without axes, nothing is joined.
class ReduceJoinKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("keep_dims", &keep_dims_));
    return node.Attr("separator", &separator_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &axes = ctx.input(1);
    ASSIGN_OR_RETURN(const Dims wanted, IntVector(axes.rank() == 0 ? axes.Reshaped(Shape{1}) : axes,
                                                  "reduction_indices"));
    std::vector<int> order;
    std::vector<bool> joined(input.rank());
    for (const int64_t axis : wanted) {
      if (axis < -input.rank() || axis >= input.rank()) {
        return OutOfRange("Invalid reduction dimension ", axis, " for input with ", input.rank(),
                          " dimension(s)");
      }
      order.push_back(static_cast<int>(axis < 0 ? axis + input.rank() : axis));
      if (joined[order.back()]) {
        return InvalidArgument("Duplicate reduction dimension ", order.back());
      }
      joined[order.back()] = true;
    }
    if (order.empty()) {
      ctx.SetOutput(0, input);
      return OkStatus();
    }
    return Join(ctx, input, order, joined);
  }

 private:
  Status Join(KernelContext& ctx, const Tensor& input, const std::vector<int>& order,
              const std::vector<bool>& joined) {
    const Dims strides = DenseStrides(input.shape().dims());
    Dims kept, output_dims;
    std::vector<int> kept_axes;
    for (int d = 0; d < input.rank(); ++d) {
      if (!joined[d]) kept_axes.push_back(d);
      if (!joined[d] || keep_dims_) output_dims.push_back(joined[d] ? 1 : input.dim(d));
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(output_dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    int64_t count = 1;
    for (const int axis : order) count *= input.dim(axis);
    // Returns the offset of element `index` of the dimensions `axes`, the last of which varies
    // fastest.
    const auto offset = [&](const std::vector<int>& axes, int64_t index) {
      int64_t at = 0;
      for (size_t i = axes.size(); i-- > 0;) {
        at += index % input.dim(axes[i]) * strides[axes[i]];
        index /= input.dim(axes[i]);
      }
      return at;
    };
    const std::vector<int> slowest_first(order.rbegin(), order.rend());
    std::vector<string_view> parts(count);
    for (int64_t k = 0; k < shape.num_elements(); ++k) {
      const int64_t base = offset(kept_axes, k);
      for (int64_t i = 0; i < count; ++i) {
        parts[i] = input.data<std::string>()[base + offset(slowest_first, i)];
      }
      output->mutable_data<std::string>()[k] = absl::StrJoin(parts, separator_);
    }
    return OkStatus();
  }

  bool keep_dims_ = false;
  std::string separator_;
};

Status ReduceJoinShape(ShapeScope& s) {
  std::vector<int64_t> axes;
  if (!s.input(0).known_rank() || !s.ConstantInts(1, &axes)) return UnknownShape(s);
  const int rank = s.input(0).rank();
  std::vector<bool> joined(rank);
  for (const int64_t axis : axes) {
    ASSIGN_OR_RETURN(const int d, NormalAxis(axis, rank, "reduction_indices"));
    joined[d] = true;
  }
  Dims dims;
  for (int d = 0; d < rank; ++d) {
    if (!joined[d]) {
      dims.push_back(s.input(0).dim(d));
    } else if (s.attr<bool>("keep_dims")) {
      dims.push_back(1);
    }
  }
  return SetOutput(s, 0, dims);
}

}  // namespace

OP(ReduceJoin) {
  return {
      .doc =
          "Joins the strings of a tensor along dimensions. The first dimension in "
          "reduction_indices varies fastest.",
      .inputs = {{"inputs", "string"}, {"reduction_indices", "int32"}},
      .outputs = {{"output", "string"}},
      .attrs = {{"keep_dims", AttrValue(false)}, {"separator", ""}},
      .shape = ReduceJoinShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {1, 0}}}}},
                   {.inputs = {{{{2, 3}}}, {{{}, {-1}}}}, .attrs = {{"keep_dims", true}}}},
  };
}
KERNEL_ANY_TYPE(ReduceJoin, ReduceJoinKernel);

}  // namespace penstock
