// SPDX-License-Identifier: Apache-2.0
//
// Timestamp: the wall clock's time, in seconds since 1970.
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class TimestampKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar(1e-6 * static_cast<double>(ctx.step().env->WallMicros())));
    return OkStatus();
  }
};

OP(Timestamp) {
  return {
      .doc =
          "Returns the seconds since 1970, in UTC, on the machine of its device, when the node "
          "runs.",
      .outputs = {{"ts", "double"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(Timestamp, TimestampKernel);

}  // namespace
}  // namespace penstock
