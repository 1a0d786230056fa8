// SPDX-License-Identifier: Apache-2.0
//
// Tensors of independent random numbers: RandomUniform, RandomStandardNormal, TruncatedNormal,
// RandomUniformInt.
#include <algorithm>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/random/distributions.h"
#include "kernels/random/generator.h"
#include "kernels/random/shape_input.h"

namespace penstock {
namespace {

// Group g of the tensor is made from the blocks that begin at g * kBlocks, whichever thread does
// it.
template <class T, class Distribution>
void Fill(const Distribution& distribution, const Philox& start, Tensor* out, ThreadPool& threads) {
  constexpr int kGroup = Distribution::kGroup;
  const int64_t n = out->num_elements();
  T* to = out->mutable_data<T>();
  threads.ParallelFor((n + kGroup - 1) / kGroup, 20 * kGroup, [&](int64_t begin, int64_t end) {
    Philox philox = start;
    philox.Skip(begin * Distribution::kBlocks);
    for (int64_t g = begin; g < end; ++g) {
      T group[kGroup];
      distribution(philox, group);
      philox.Skip(Distribution::kBlocks);
      std::copy_n(group, std::min<int64_t>(kGroup, n - g * kGroup), to + g * kGroup);
    }
  });
}

template <class T, template <class> class Distribution>
class FillKernel : public Kernel {
  Status Init(const KernelInit& node) override { return generator_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeFromTensor("shape", ctx.input(0)));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    Fill<T>(Distribution<T>(), generator_.ReserveForSamples(out->num_elements()), out,
            ctx.threads());
    return OkStatus();
  }
  Generator generator_;
};
template <class T>
using UniformKernel = FillKernel<T, Uniform>;
template <class T>
using NormalKernel = FillKernel<T, Normal>;
template <class T>
using TruncatedNormalKernel = FillKernel<T, TruncatedNormal>;

template <class T>
class UniformIntKernel final : public Kernel {
  Status Init(const KernelInit& node) override { return generator_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeFromTensor("shape", ctx.input(0)));
    for (int i : {1, 2}) {
      if (ctx.input(i).rank() != 0) {
        return InvalidArgument(i == 1 ? "minval" : "maxval", " must be a scalar, has shape ",
                               ctx.input(i).shape().ToString());
      }
    }
    const T low = ctx.input(1).template scalar<T>();
    const T high = ctx.input(2).template scalar<T>();
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (out->num_elements() == 0) return OkStatus();
    if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    using Unsigned = typename UniformInteger<T>::Unsigned;
    const UniformInteger<T> distribution{
        low, static_cast<Unsigned>(static_cast<Unsigned>(high) - static_cast<Unsigned>(low))};
    Fill<T>(distribution, generator_.ReserveForSamples(out->num_elements()), out, ctx.threads());
    return OkStatus();
  }
  Generator generator_;
};

const std::vector<AttrDef>& Seeds() {
  static const auto& seeds = *new std::vector<AttrDef>{{"seed", 0}, {"seed2", 0}};
  return seeds;
}

OpDef FloatingFill(const char* doc) {
  return {.doc = doc,
          .inputs = {{"shape", "T"}},
          .outputs = {{"output", "dtype"}},
          .types = {{"dtype", kFloating}, {"T", kIndex}},
          .attrs = Seeds(),
          .shape = ShapeFromFirstInput,
          .gradient = NoGradient,
          .examples = {{.inputs = {{{{2}, {3, 5}}}}}},
          .stateful = true};
}

}  // namespace

OP(RandomUniform, (FloatingFill("Numbers spread evenly over [0, 1).")));
KERNEL_BY("dtype", RandomUniform, UniformKernel, half, bfloat16, float, double);

OP(RandomStandardNormal, (FloatingFill("Normal numbers of mean 0 and standard deviation 1.")));
KERNEL_BY("dtype", RandomStandardNormal, NormalKernel, half, bfloat16, float, double);

OP(TruncatedNormal,
   (FloatingFill("Normal numbers, those beyond two standard deviations drawn again.")));
KERNEL_BY("dtype", TruncatedNormal, TruncatedNormalKernel, half, bfloat16, float, double);

OP(RandomUniformInt, {
                         .doc = "Integers spread evenly over [minval, maxval).",
                         .inputs = {{"shape", "T"}, {"minval", "Tout"}, {"maxval", "Tout"}},
                         .outputs = {{"output", "Tout"}},
                         .types = {{"Tout", kIndex}, {"T", kIndex}},
                         .attrs = Seeds(),
                         .shape = ShapeFromFirstInput,
                         .gradient = NoGradient,
                         .examples = {{.inputs = {{{{2}, {3, 5}}}, {{{}, {-4}}}, {{{}, {9}}}}}},
                         .stateful = true,
                     });
KERNEL_BY("Tout", RandomUniformInt, UniformIntKernel, int32_t, int64_t);

}  // namespace penstock
