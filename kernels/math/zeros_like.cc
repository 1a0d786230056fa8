// SPDX-License-Identifier: Apache-2.0
//
// ZerosLike, for all types, variants included.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/elements.h"
#include "kernels/math/accumulate.h"

namespace penstock {
namespace {

class ZerosLikeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).dtype() == DType::kVariant) {
      ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(ctx, ctx.input(0)));
      ctx.SetOutput(0, std::move(zeros));
      return OkStatus();
    }
    const Shape shape = ctx.input(0).shape();
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    Zero(*output, ctx.threads());
    return OkStatus();
  }
};

OP(ZerosLike) {
  return {
      .doc = "Returns zeros (or empty strings) in the shape of x.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kAnyType}},
      .shape = SameShape,
      .gradient = NoGradient,
      .reuses = Reuse::kFirst,
  };
}

KERNEL_ANY_TYPE(ZerosLike, ZerosLikeKernel);

}  // namespace
}  // namespace penstock
