// SPDX-License-Identifier: Apache-2.0
//
// Fact: returns a constant string. For experiments.
#include "core/op/shape_scope.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

class FactKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar<std::string>("0! == 1"));
    return OkStatus();
  }
};

}  // namespace

OP(Fact) {
  return {
      .doc = "Returns a string with a fact about factorials.",
      .outputs = {{"fact", "string"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {Example{}},
  };
}
KERNEL_ANY_TYPE(Fact, FactKernel);

}  // namespace penstock
