// SPDX-License-Identifier: Apache-2.0
//
// Ops that return a tensor's shape: Shape, ShapeN, Size, Rank. They read no element. Their outputs
// are in host memory on every device, because host code uses them.
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

// Writes `values` to output i, as int32 or int64. InvalidArgument if a value does not fit in int32.
Status WriteInts(KernelContext& ctx, int i, const Shape& shape, absl::Span<const int64_t> values) {
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(i, shape, &output));
  if (output->dtype() == DType::kInt64) {
    std::copy(values.begin(), values.end(), output->mutable_data<int64_t>());
    return OkStatus();
  }
  auto flat = output->mutable_flat<int32_t>();
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("output type is int32, but the input has ",
                             shape.rank() == 0 ? "size " : "a dimension of ", values[k]);
    }
    flat[k] = static_cast<int32_t>(values[k]);
  }
  return OkStatus();
}

class ShapeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& shape = ctx.input(i).shape();
      RETURN_IF_ERROR(WriteInts(ctx, i, Shape({shape.rank()}), shape.dims()));
    }
    return OkStatus();
  }
};

class SizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    return WriteInts(ctx, 0, Shape(), {ctx.input(0).num_elements()});
  }
};

class RankKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    return WriteInts(ctx, 0, Shape(), {ctx.input(0).rank()});
  }
};

Status VectorsOfRank(ShapeScope& s) {
  for (int i = 0; i < s.num_inputs(); ++i) s.set_output(i, PartialShape({s.input(i).rank()}));
  return OkStatus();
}

OP(Shape) {
  return {
      .doc = "Returns the dimensions of the input.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"T", kAnyType}, {"out_type", kIndex, DType::kInt32}},
      .shape = VectorsOfRank,
      .gradient = NoGradient,
      .shape_op = ShapeOp::kShape,
  };
}

OP(ShapeN) {
  return {
      .doc = "Returns the dimensions of each input.",
      .inputs = {{"input", Repeat("N", "T")}},
      .outputs = {{"output", Repeat("N", "out_type")}},
      .types = {{"T", kAnyType}, {"out_type", kIndex, DType::kInt32}},
      .attrs = {{"N", Ints{.min = 1}}},
      .shape = VectorsOfRank,
      .gradient = NoGradient,
      .shape_op = ShapeOp::kShape,
  };
}

OP(Size) {
  return {
      .doc = "Returns the number of elements of the input.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"T", kAnyType}, {"out_type", kIndex, DType::kInt32}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .shape_op = ShapeOp::kSize,
  };
}

OP(Rank) {
  return {
      .doc = "Returns the number of dimensions of the input.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "int32"}},
      .types = {{"T", kAnyType}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .shape_op = ShapeOp::kRank,
  };
}

KERNEL_ANY_TYPE(Shape, ShapeKernel);
KERNEL_ANY_TYPE(ShapeN, ShapeKernel);
KERNEL_ANY_TYPE(Size, SizeKernel);
KERNEL_ANY_TYPE(Rank, RankKernel);

KERNEL_DEF({.op = "Shape", .device = "GPU", .host_args = {"output"}, .make = Make<ShapeKernel>});
KERNEL_DEF({.op = "ShapeN", .device = "GPU", .host_args = {"output"}, .make = Make<ShapeKernel>});
KERNEL_DEF({.op = "Size", .device = "GPU", .host_args = {"output"}, .make = Make<SizeKernel>});
KERNEL_DEF({.op = "Rank", .device = "GPU", .host_args = {"output"}, .make = Make<RankKernel>});

}  // namespace
}  // namespace penstock
