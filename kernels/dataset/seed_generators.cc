// SPDX-License-Identifier: Apache-2.0
//
// The seeds of shuffled datasets as resources: AnonymousSeedGenerator,
// AnonymousRandomSeedGenerator, DummySeedGenerator, and the ops that delete them.
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/seeds.h"
#include "kernels/dataset/shared_handle.h"

namespace penstock {
namespace {

// No container holds the resource: it lives as long as its handle.
class AnonymousKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Seeds seeds{};
    ASSIGN_OR_RETURN(seeds.seed, ScalarInput<int64_t>(ctx, 0, "seed"));
    ASSIGN_OR_RETURN(seeds.seed2, ScalarInput<int64_t>(ctx, 1, "seed2"));
    bool reshuffles = true;
    if (ctx.num_inputs() > 2) {
      ASSIGN_OR_RETURN(reshuffles, ScalarInput<bool>(ctx, 2, "reshuffle"));
    }
    static std::atomic<int64_t> last{0};
    auto generator = std::make_shared<SeedGenerator>(seeds, reshuffles, *ctx.step().env);
    ctx.SetOutput(0, SharedHandle(ctx, StrCat("AnonymousSeedGenerator", ++last),
                                  SeedGenerator::kType, std::move(generator)));
    ctx.SetOutput(1, Tensor::Scalar(Variant()));
    return OkStatus();
  }
};

// Returns a handle without a generator, for datasets that make generators of their own.
class DummyKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, SharedHandle(ctx, "dummy_seed_generator", SeedGenerator::kType, nullptr));
    return OkStatus();
  }
};

const std::vector<ArgDef> kOutputs = {{"handle", "resource"}, {"deleter", "variant"}};
constexpr char kSeedGeneratorDoc[] =
    "Makes a generator of seeds, which the iterators of shuffled datasets share.";
constexpr char kDeleteDoc[] = "Declares that a generator of seeds is no longer used.";

OP(AnonymousSeedGenerator) {
  return SharedHandleOp(kSeedGeneratorDoc,
                        {{"seed", "int64"}, {"seed2", "int64"}, {"reshuffle", "bool"}}, kOutputs);
}
OP(AnonymousRandomSeedGenerator) {
  return SharedHandleOp(kSeedGeneratorDoc, {{"seed", "int64"}, {"seed2", "int64"}}, kOutputs);
}
OP(DummySeedGenerator) {
  return SharedHandleOp(
      "Returns a handle without a generator of seeds: a dataset with this handle makes a generator "
      "of its own.",
      {}, {{"handle", "resource"}});
}
OP(DeleteSeedGenerator) { return DeleteSharedOp(kDeleteDoc); }
OP(DeleteRandomSeedGenerator) { return DeleteSharedOp(kDeleteDoc); }

KERNEL_ANY_TYPE(AnonymousSeedGenerator, AnonymousKernel);
KERNEL_ANY_TYPE(AnonymousRandomSeedGenerator, AnonymousKernel);
KERNEL_ANY_TYPE(DummySeedGenerator, DummyKernel);
KERNEL_ANY_TYPE(DeleteSeedGenerator, DeleteSharedKernel);
KERNEL_ANY_TYPE(DeleteRandomSeedGenerator, DeleteSharedKernel);

}  // namespace
}  // namespace penstock
