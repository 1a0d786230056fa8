// SPDX-License-Identifier: Apache-2.0
//
// RecordStaleness: shows the staleness of an asynchronous worker's updates to the people who run
// the cluster. TensorFlow has no such op. client/sync/staleness.h adds it to a training step.
#include "core/op/gradient.h"
#include "core/op/noted_staleness.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class RecordStalenessKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& staleness = ctx.input(0);
    if (staleness.rank() != 0) {
      return InvalidArgument("staleness must be a scalar, has shape ",
                             staleness.shape().ToString());
    }
    NoteStaleness(ctx.device_name(), staleness.scalar<int64_t>());
    ctx.SetOutput(0, staleness);
    return OkStatus();
  }
};

OP(RecordStaleness) {
  return {
      .doc =
          "Records how stale the gradients of an update were: the number of other updates between "
          "the step's read of the variables and its own update. Returns its input. The task on "
          "which the op runs shows the counts in `penstock status` and /metrics.",
      .inputs = {{"staleness", "int64"}},
      .outputs = {{"recorded", "int64"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{}, {2}}}}}},
      .stateful = true,
      .is_view = true,
  };
}
KERNEL_ANY_TYPE(RecordStaleness, RecordStalenessKernel);

}  // namespace
}  // namespace penstock
