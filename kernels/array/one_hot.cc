// SPDX-License-Identifier: Apache-2.0
//
// OneHot: turns each index into a vector that is `on` at the index and `off` elsewhere.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

StatusOr<int> OneHotAxis(int64_t axis, int rank) {
  if (axis < -1 || axis > rank) {
    return InvalidArgument("Expected axis to be -1 or between [0, ", rank,
                           "].  But received: ", axis);
  }
  return static_cast<int>(axis < 0 ? rank : axis);
}

// Returns the output's dimensions: those of the indices, with `depth` inserted at `axis`.
Dims OneHotDims(absl::Span<const int64_t> indices, int axis, int64_t depth) {
  Dims dims(indices.begin(), indices.end());
  dims.insert(dims.begin() + axis, depth);
  return dims;
}

template <class Index>
class OneHotKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("axis", &axis_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    ASSIGN_OR_RETURN(const int64_t depth, IntScalar(ctx.input(1), "depth"));
    if (depth < 0) return InvalidArgument("depth must be non-negative, got: ", depth);
    for (int i = 2; i <= 3; ++i) {
      if (ctx.input(i).rank() == 0) continue;
      return InvalidArgument(i == 2 ? "on_value" : "off_value",
                             " must be a scalar, but got: ", ctx.input(i).shape().ToString());
    }
    ASSIGN_OR_RETURN(const int axis, OneHotAxis(axis_, indices.rank()));
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Make(OneHotDims(indices.shape().dims(), axis, depth)));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    FillWith(ctx.input(3).raw_data(), *output, ctx.threads());
    int64_t inner = 1;  // elements of indices after the new dimension
    for (int i = axis; i < indices.rank(); ++i) inner *= indices.dim(i);
    SetOn(indices.flat<Index>(), inner, depth, ctx.input(2).raw_data(), *output);
    return OkStatus();
  }

 private:
  // Writes `on` for each index. Skips indices outside [0, depth): their vectors are all `off`.
  static void SetOn(absl::Span<const Index> indices, int64_t inner, int64_t depth, const void* on,
                    Tensor& output) {
    const DType dtype = output.dtype();
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto index = static_cast<int64_t>(indices[i]);
      if (index < 0 || index >= depth) continue;
      const int64_t outer = i / inner, place = i % inner;
      CopyElements(
          dtype, on,
          ElementAt(output.mutable_raw_data(), dtype, (outer * depth + index) * inner + place), 1);
    }
  }

  int64_t axis_ = -1;
};

Status OneHotShape(ShapeScope& s) {
  for (int i = 1; i <= 3; ++i) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  const PartialShape& indices = s.input(0);
  if (!indices.known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const int axis, OneHotAxis(s.attr<int64_t>("axis"), indices.rank()));
  std::vector<int64_t> depth;
  const bool known = s.ConstantInts(1, &depth);
  if (known && depth[0] < 0) {
    return InvalidArgument("depth must be non-negative, got: ", depth[0]);
  }
  return SetOutput(s, 0,
                   OneHotDims(indices.dims(), axis, known ? depth[0] : PartialShape::kUnknown));
}

OP(OneHot) {
  return {
      .doc =
          "Converts each index to a vector along the new dimension `axis` (-1: the last): "
          "on_value at the index, off_value elsewhere.",
      .inputs = {{"indices", "TI"}, {"depth", "int32"}, {"on_value", "T"}, {"off_value", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes},
                {"TI", {DType::kUint8, DType::kInt8, DType::kInt32, DType::kInt64}, DType::kInt64}},
      .attrs = {{"axis", -1}},
      .shape = OneHotShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}, {0, 2, 1}}},
                               {{.values = {3}}},
                               {{.values = {0.9}}},
                               {{.values = {0.1}}}}}},
  };
}
KERNEL_BY("TI", OneHot, OneHotKernel, uint8_t, int8_t, int32_t, int64_t);

}  // namespace
}  // namespace penstock
