// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are a function of an input `seed`: StatelessRandomUniform,
// StatelessRandomNormal, StatelessTruncatedNormal.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/fill_random.h"

namespace penstock {
namespace {

// One block under a fixed key mixes the two seeds, so that it does not matter which of their bits
// the caller varies.
Philox StreamOf(uint64_t seed0, uint64_t seed1) {
  const Philox::Key fixed = {0x3ec8f720, 0x02461e29};
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const Philox::Block mix =
      Philox({low(seed0), low(seed0 >> 32), low(seed1), low(seed1 >> 32)}, fixed)();
  return Philox({0, 0, mix[2], mix[3]}, {mix[0], mix[1]});
}

template <template <class> class Distribution, class T>
class StatelessKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    ASSIGN_OR_RETURN(const Dims seed, IntVector(ctx.input(1), "seed", 2));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    FillRandom(StreamOf(seed[0], seed[1]), Distribution<T>(), output->mutable_data<T>(),
               shape.num_elements(), ctx.threads());
    return OkStatus();
  }
};

Status StatelessShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape seed, s.WithRank(1, 1));
  if (seed.dim(0) >= 0 && seed.dim(0) != 2) {
    return InvalidArgument("seed must have shape [2], has ", seed.ToString());
  }
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OpDef StatelessOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"shape", "T"}, {"seed", "Tseed"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kFloating, DType::kFloat},
                {"T", kIndex, DType::kInt32},
                {"Tseed", kIndex, DType::kInt64}},
      .shape = StatelessShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 3}}}, {{{2}, {1, 2}}}}}},
  };
}

OP(StatelessRandomUniform, (StatelessOp("Uniform numbers in [0, 1), a function of the seed.")));
OP(StatelessRandomNormal, (StatelessOp("Standard normal numbers, a function of the seed.")));
OP(StatelessTruncatedNormal,
   (StatelessOp("Standard normal numbers within +-2, a function of the seed.")));

template <class T>
using UniformKernel = StatelessKernel<Uniform, T>;
template <class T>
using NormalKernel = StatelessKernel<Normal, T>;
template <class T>
using TruncatedNormalKernel = StatelessKernel<TruncatedNormal, T>;
KERNEL_BY("dtype", StatelessRandomUniform, UniformKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatelessRandomNormal, NormalKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatelessTruncatedNormal, TruncatedNormalKernel, half, bfloat16, float, double);

}  // namespace
}  // namespace penstock
