// SPDX-License-Identifier: Apache-2.0
//
// An op library with the op CubeRoot, which TensorFlow does not have. docs/custom-ops.md shows how
// to build and run it.
#include <cmath>

#include "core/op/op_library.h"

namespace {

using namespace penstock;  // NOLINT

template <class T>
class CubeRootKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    Tensor* y = nullptr;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, ctx.input(0).shape(), &y));
    const auto from = ctx.input(0).flat<T>();
    const auto to = y->mutable_flat<T>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = std::cbrt(from[i]);
    return OkStatus();
  }
};

OP(CubeRoot) {
  return {.doc = "The number whose cube is x.",
          .inputs = {{"x", "T"}},
          .outputs = {{"y", "T"}},
          .types = {{"T", {DType::kFloat, DType::kDouble}}},
          .shape = SameShape,
          .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
            return {g.dy() / (3.0 * g.y() * g.y())};
          },
          .reuses = Reuse::kFirst};
}
KERNEL(CubeRoot, CubeRootKernel, float, double);

}  // namespace
