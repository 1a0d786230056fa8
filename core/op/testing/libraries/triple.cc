// SPDX-License-Identifier: Apache-2.0
//
// An op library for tests. The name of its only op is the macro OP_NAME.
#include "core/op/op_library.h"

namespace {

using namespace penstock;  // NOLINT

template <class T>
class TripleKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Tensor* y = nullptr;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, ctx.input(0).shape(), &y));
    const auto from = ctx.input(0).flat<T>();
    const auto to = y->mutable_flat<T>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = 3 * from[i];
    return OkStatus();
  }
};

// OP itself does not expand a macro argument.
#define DECLARE(Name) OP(Name)
DECLARE(OP_NAME) {
  return {.doc = "y = 3 x.",
          .inputs = {{"x", "T"}},
          .outputs = {{"y", "T"}},
          .types = {{"T", {DType::kFloat, DType::kDouble}}},
          .shape = SameShape,
          .reuses = Reuse::kFirst};
}
KERNEL(OP_NAME, TripleKernel, float, double);

}  // namespace
