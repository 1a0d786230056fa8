// SPDX-License-Identifier: Apache-2.0
//
// Ops that compute nothing and only order other nodes by control edges. The executor does not run
// them.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class NoOpKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override { return OkStatus(); }
};

OP(NoOp) {
  return {
      .doc = "Does nothing; joins control edges.",
      .shape = NoOutputs,
      .gradient = NoGradient,
      .only_orders = true,
  };
}

OP(ControlTrigger) {
  return {
      .doc = "Does nothing; runs even if some of its control inputs are dead.",
      .shape = NoOutputs,
      .gradient = NoGradient,
      .only_orders = true,
      .runs_dead = true,
  };
}
KERNEL_ANY_TYPE(NoOp, NoOpKernel);
KERNEL_ANY_TYPE(ControlTrigger, NoOpKernel);
KERNEL_DEF({.op = "NoOp", .device = "GPU", .make = Make<NoOpKernel>});
KERNEL_DEF({.op = "ControlTrigger", .device = "GPU", .make = Make<NoOpKernel>});

}  // namespace
}  // namespace penstock
