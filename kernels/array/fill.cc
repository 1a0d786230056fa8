// SPDX-License-Identifier: Apache-2.0
//
// Fill, OnesLike: tensors whose elements have one value. ZerosLike also works on variants, so it is
// in kernels/math/zeros_like.cc.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/one.h"
#include "kernels/array/types.h"

namespace penstock {
namespace {

class FillKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(1);
    if (value.rank() != 0) {
      return InvalidArgument("value must be a scalar, has shape ", value.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "dims"));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    FillWith(value.raw_data(), *output, ctx.threads());
    return OkStatus();
  }
};

class OnesLikeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    const ElementBytes one = One(output->dtype());
    FillWith(one.bytes, *output, ctx.threads());
    return OkStatus();
  }
};

Status FillShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

std::vector<Gradient> FillGradient(const GradientScope& g) {
  const Output all = Range(g.Const<int32_t>(0), RankOf(g.dy()), g.Const<int32_t>(1));
  return {Gradient(), Sum(g.dy(), all)};
}

OP(Fill) {
  return {
      .doc = "Returns a tensor of shape `dims` in which every element is `value`.",
      .inputs = {{"dims", "index_type"}, {"value", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"index_type", kIndex, DType::kInt32}},
      .shape = FillShape,
      .gradient = FillGradient,
      .examples = {{.inputs = {{{{2}, {2, 3}}}, {{.values = {0.5}}}}}},
  };
}

OP(OnesLike) {
  return {
      .doc = "Returns ones in the shape of x.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", With(kNumber, {DType::kBool})}},
      .shape = SameShape,
      .gradient = NoGradient,
      .reuses = Reuse::kFirst,
  };
}

KERNEL_ANY_TYPE(Fill, FillKernel);
KERNEL_ANY_TYPE(OnesLike, OnesLikeKernel);

}  // namespace
}  // namespace penstock
