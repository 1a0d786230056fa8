// SPDX-License-Identifier: Apache-2.0
//
// Random numbers from a generator whose state is a variable, as the first versions of
// tf.random.Generator draw them: StatefulUniform, StatefulStandardNormalV2,
// StatefulTruncatedNormal, StatefulUniformInt, StatefulUniformFullInt.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/fill_random.h"
#include "kernels/random/generator_state.h"

namespace penstock {
namespace {

constexpr int kShapeInput = 2;

// Draws the numbers of the output from the generator.
template <class Distribution>
Status DrawFromGenerator(KernelContext& ctx, const Distribution& distribution) {
  using T = typename Distribution::Result;
  ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(kShapeInput), "shape"));
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
  ASSIGN_OR_RETURN(const GeneratorState before,
                   SkipNumbers(ctx, static_cast<uint64_t>(shape.num_elements())));
  return FillRandom(StreamAt(before), distribution, output->mutable_data<T>(), shape.num_elements(),
                    ctx.step());
}

template <template <class> class Distribution, class T>
class GeneratorKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override { return DrawFromGenerator(ctx, Distribution<T>()); }
};

template <class T>
class GeneratorIntKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor &low = ctx.input(kShapeInput + 1), &high = ctx.input(kShapeInput + 2);
    if (low.rank() != 0 || high.rank() != 0) {
      return InvalidArgument("minval and maxval must be scalars, have shapes ",
                             low.shape().ToString(), " and ", high.shape().ToString());
    }
    if (low.scalar<T>() >= high.scalar<T>()) {
      return InvalidArgument("Need minval < maxval, got ", low.scalar<T>(),
                             " >= ", high.scalar<T>());
    }
    return DrawFromGenerator(ctx, UniformInt<T>(low.scalar<T>(), high.scalar<T>()));
  }
};

template <class T>
using GeneratorUniformKernel = GeneratorKernel<Uniform, T>;
template <class T>
using GeneratorNormalKernel = GeneratorKernel<Normal, T>;
template <class T>
using GeneratorTruncatedNormalKernel = GeneratorKernel<TruncatedNormal, T>;
template <class T>
using GeneratorBitsKernel = GeneratorKernel<UniformBits, T>;

OpDef GeneratorOp(const char* doc, DTypes types, DType default_type) {
  return {
      .doc = doc,
      .inputs = {{"resource", "resource"}, {"algorithm", "int64"}, {"shape", "shape_dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", std::move(types), default_type}, {"shape_dtype", kIndex, DType::kInt64}},
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, kShapeInput));
        s.set_output(0, std::move(shape));
        return OkStatus();
      },
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "works on a generator's state: tests/interop has its program",
  };
}

OP(StatefulUniform) {
  return GeneratorOp("Uniform numbers in [0, 1), from a generator.", kFloating, DType::kFloat);
}
OP(StatefulStandardNormalV2) {
  return GeneratorOp("Standard normal numbers, from a generator.", kFloating, DType::kFloat);
}
OP(StatefulTruncatedNormal) {
  return GeneratorOp("Standard normal numbers truncated to [-2, 2], from a generator.", kFloating,
                     DType::kFloat);
}
OP(StatefulUniformFullInt) {
  return GeneratorOp("Uniform integers over all values of the type, from a generator.",
                     {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64},
                     DType::kUint64);
}
OP(StatefulUniformInt) {
  OpDef op =
      GeneratorOp("Uniform integers in [minval, maxval), from a generator.", kIndex, DType::kInt64);
  op.inputs.push_back({"minval", "dtype"});
  op.inputs.push_back({"maxval", "dtype"});
  return op;
}
KERNEL_BY("dtype", StatefulUniform, GeneratorUniformKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatefulStandardNormalV2, GeneratorNormalKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatefulTruncatedNormal, GeneratorTruncatedNormalKernel, half, bfloat16, float,
          double);
KERNEL_BY("dtype", StatefulUniformFullInt, GeneratorBitsKernel, int32_t, int64_t, uint32_t,
          uint64_t);
KERNEL_BY("dtype", StatefulUniformInt, GeneratorIntKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock
