// SPDX-License-Identifier: Apache-2.0
//
// RngReadAndSkip, RngSkip: advance a generator whose state is a variable (tf.random.Generator), a
// vector of int64: Philox's counter (two numbers) and its key.
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

constexpr int64_t kStateSize = 3;
constexpr int64_t kPhilox = 1;
// The blocks that are reserved for each number: enough for every distribution.
constexpr uint64_t kBlocksPerNumber = 256;

// Advances the state by the blocks for `count` numbers; sets `*before` to the old state.
// InvalidArgument unless alg is Philox, and the state is a vector of at least kStateSize numbers.
Status Skip(KernelContext& ctx, uint64_t count, std::vector<int64_t>* before) {
  ASSIGN_OR_RETURN(const int64_t algorithm, IntScalar(ctx.input(1), "alg"));
  if (algorithm != kPhilox) {
    return InvalidArgument("alg is ", algorithm, "; there is only Philox (", kPhilox, ")");
  }
  return UpdateVariableInput(ctx, DType::kInt64, [&](Tensor& state) -> Status {
    if (state.rank() != 1 || state.dim(0) < kStateSize) {
      return InvalidArgument("For the Philox algorithm, the size of state must be at least ",
                             kStateSize, "; its shape is ", state.shape().ToString());
    }
    int64_t* words = state.mutable_data<int64_t>();
    before->assign(words, words + kStateSize);
    const auto blocks = static_cast<unsigned __int128>(count) * kBlocksPerNumber;
    auto counter = static_cast<unsigned __int128>(static_cast<uint64_t>(words[1])) << 64 |
                   static_cast<uint64_t>(words[0]);
    counter += blocks;
    words[0] = static_cast<int64_t>(static_cast<uint64_t>(counter));
    words[1] = static_cast<int64_t>(static_cast<uint64_t>(counter >> 64));
    return OkStatus();
  });
}

class ReadAndSkipKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& delta = ctx.input(2);
    if (delta.rank() != 0) {
      return InvalidArgument("delta must be a scalar, has shape ", delta.shape().ToString());
    }
    std::vector<int64_t> before;
    RETURN_IF_ERROR(Skip(ctx, delta.scalar<uint64_t>(), &before));
    ctx.SetOutput(0, Tensor::Vector<int64_t>(before));
    return OkStatus();
  }
};

class SkipKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t delta, IntScalar(ctx.input(2), "delta"));
    if (delta < 0) return InvalidArgument("delta must be >= 0, is ", delta);
    std::vector<int64_t> before;
    return Skip(ctx, static_cast<uint64_t>(delta), &before);
  }
};

OP(RngReadAndSkip) {
  return {
      .doc = "Returns the state of a random number generator, and then skips delta numbers.",
      .inputs = {{"resource", "resource"}, {"alg", "int32"}, {"delta", "uint64"}},
      .outputs = {{"value", "int64"}},
      .shape = [](ShapeScope& s) { return SetOutput(s, 0, {kStateSize}); },
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
