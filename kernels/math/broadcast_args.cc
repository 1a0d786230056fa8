// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting of shapes: BroadcastArgs returns the resulting shape, BroadcastGradientArgs the
// dimensions along which each operand was repeated.
#include <algorithm>

#include "core/op/shape_scope.h"
#include "kernels/engine/reduction_plan.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

using DimList = absl::InlinedVector<int64_t, 4>;

Status ReadShapes(KernelContext& ctx, DimList* s0, DimList* s1) {
  for (int i = 0; i < 2; ++i) {
    if (ctx.input(i).rank() != 1) {
      return InvalidArgument("input ", i, " must be a vector, has shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  ASSIGN_OR_RETURN(*s0, AxisValues(ctx.input(0), "s0"));
  ASSIGN_OR_RETURN(*s1, AxisValues(ctx.input(1), "s1"));
  return OkStatus();
}

// Returns dimension i of `shape` extended to rank `rank` by leading ones.
int64_t DimOf(const DimList& shape, int rank, int i) {
  const int own = i - (rank - static_cast<int>(shape.size()));
  return own < 0 ? 1 : shape[own];
}

Status Incompatible(const DimList& s0, const DimList& s1) {
  const auto text = [](const DimList& dims) {
    std::string joined;
    for (int64_t d : dims) StrAppend(&joined, joined.empty() ? "" : ",", d);
    return joined;
  };
  return InvalidArgument("Incompatible shapes: [", text(s0), "] vs. [", text(s1), "]");
}

Status WriteInts(KernelContext& ctx, int i, const DimList& values) {
  Tensor* y;
  RETURN_IF_ERROR(ctx.Allocate(i, Shape{static_cast<int64_t>(values.size())}, &y));
  if (y->dtype() == DType::kInt32) {
    std::copy(values.begin(), values.end(), y->mutable_data<int32_t>());
  } else {
    std::copy(values.begin(), values.end(), y->mutable_data<int64_t>());
  }
  return OkStatus();
}

class BroadcastArgsKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    DimList s0, s1, result;
    RETURN_IF_ERROR(ReadShapes(ctx, &s0, &s1));
    const int rank = static_cast<int>(std::max(s0.size(), s1.size()));
    for (int i = 0; i < rank; ++i) {
      const int64_t a = DimOf(s0, rank, i), b = DimOf(s1, rank, i);
      if (a != b && a != 1 && b != 1) return Incompatible(s0, s1);
      result.push_back(a == 1 ? b : a);
    }
    return WriteInts(ctx, 0, result);
  }
};

class BroadcastGradientArgsKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    DimList s0, s1, r0, r1;
    RETURN_IF_ERROR(ReadShapes(ctx, &s0, &s1));
    const int rank = static_cast<int>(std::max(s0.size(), s1.size()));
    for (int i = 0; i < rank && s0 != s1; ++i) {
      const int64_t a = DimOf(s0, rank, i), b = DimOf(s1, rank, i);
      if (a != b && a != 1 && b != 1) return Incompatible(s0, s1);
      // A dimension that is 1 in both operands is in both lists: a sum over it changes nothing.
      if (a == 1) r0.push_back(i);
      if (b == 1) r1.push_back(i);
    }
    RETURN_IF_ERROR(WriteInts(ctx, 0, r0));
    return WriteInts(ctx, 1, r1);
  }
};

Status VectorShapes(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, PartialShape::UnknownOfRank(1));
  return OkStatus();
}

}  // namespace

OP(BroadcastArgs) {
  return {
      .doc = "Returns the shape that tensors of shapes s0 and s1 broadcast to.",
      .inputs = {{"s0", "T"}, {"s1", "T"}},
      .outputs = {{"r0", "T"}},
      .types = {{"T", kIndex, DType::kInt32}},
      .shape = VectorShapes,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 1}}}, {{{1}, {3}}}}}},
  };
}

OP(BroadcastGradientArgs) {
  return {
      .doc =
          "Returns the dimensions to sum over in the gradients of operands of shapes s0 and "
          "s1.",
      .inputs = {{"s0", "T"}, {"s1", "T"}},
      .outputs = {{"r0", "T"}, {"r1", "T"}},
      .types = {{"T", kIndex, DType::kInt32}},
      .shape = VectorShapes,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 1}}}, {{{1}, {3}}}}}},
  };
}

// Shapes are in host memory on every device, so these kernels are the same for all devices.
KERNEL_DEF({.op = "BroadcastArgs",
            .host_args = {"s0", "s1", "r0"},
            .make = Make<BroadcastArgsKernel>});
KERNEL_DEF({.op = "BroadcastGradientArgs",
            .host_args = {"s0", "s1", "r0", "r1"},
            .make = Make<BroadcastGradientArgsKernel>});

}  // namespace penstock
