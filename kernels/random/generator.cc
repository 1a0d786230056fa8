// SPDX-License-Identifier: Apache-2.0
//
// RngReadAndSkip, RngSkip: advance a generator whose state is a variable (tf.random.Generator).
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/generator_state.h"

namespace penstock {
namespace {

class ReadAndSkipKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& delta = ctx.input(2);
    if (delta.rank() != 0) {
      return InvalidArgument("delta must be a scalar, has shape ", delta.shape().ToString());
    }
    ASSIGN_OR_RETURN(const GeneratorState before, SkipNumbers(ctx, delta.scalar<uint64_t>()));
    ctx.SetOutput(0, Tensor::Vector<int64_t>({before.begin(), before.end()}));
    return OkStatus();
  }
};

class SkipKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t delta, IntScalar(ctx.input(2), "delta"));
    if (delta < 0) return InvalidArgument("delta must be >= 0, is ", delta);
    return SkipNumbers(ctx, static_cast<uint64_t>(delta)).status();
  }
};

OP(RngReadAndSkip) {
  return {
      .doc = "Returns the state of a random number generator, and then skips delta numbers.",
      .inputs = {{"resource", "resource"}, {"alg", "int32"}, {"delta", "uint64"}},
      .outputs = {{"value", "int64"}},
      .shape = [](ShapeScope& s) { return SetOutput(s, 0, {kGeneratorStateSize}); },
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "works on a generator's state: tests/interop has its program",
  };
}

OP(RngSkip) {
  return {
      .doc = "Skips delta numbers of a random number generator.",
      .inputs = {{"resource", "resource"}, {"algorithm", "int64"}, {"delta", "int64"}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "works on a generator's state: tests/interop has its program",
  };
}
KERNEL_ANY_TYPE(RngReadAndSkip, ReadAndSkipKernel);
KERNEL_ANY_TYPE(RngSkip, SkipKernel);

}  // namespace
}  // namespace penstock
