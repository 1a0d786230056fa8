// SPDX-License-Identifier: Apache-2.0
//
// RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal: tensors of random numbers
// of a given shape.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/fill_random.h"
#include "kernels/random/random_stream.h"

namespace penstock {
namespace {

template <template <class> class Distribution, class T>
class RandomKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return stream_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const int64_t count = shape.num_elements();
    return FillRandom(stream_.ReserveForOutputs(count, *ctx.step().env), Distribution<T>(),
                      output->mutable_data<T>(), count, ctx.step());
  }

 private:
  RandomStream stream_;
};

template <class T>
StatusOr<T> ScalarOf(const Tensor& tensor, string_view name) {
  if (tensor.rank() == 0) return tensor.scalar<T>();
  return InvalidArgument(name, " must be 0-D, got shape ", tensor.shape().ToString());
}

template <class T>
class RandomUniformIntKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return stream_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const T low, ScalarOf<T>(ctx.input(1), "minval"));
    ASSIGN_OR_RETURN(const T high, ScalarOf<T>(ctx.input(2), "maxval"));
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const int64_t count = shape.num_elements();
    if (count == 0) return OkStatus();
    if (low >= high) {
      return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    }
    return FillRandom(stream_.ReserveForOutputs(count, *ctx.step().env), UniformInt<T>(low, high),
                      output->mutable_data<T>(), count, ctx.step());
  }

 private:
  RandomStream stream_;
};

Status ShapeFromInput(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OpDef RandomOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"shape", "T"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kFloating}, {"T", kIndex}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = ShapeFromInput,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 3}}}}}},
      .stateful = true,
  };
}

OP(RandomUniform) { return RandomOp("Uniform numbers in [0, 1)."); }
OP(RandomStandardNormal) { return RandomOp("Normal numbers of mean 0 and standard deviation 1."); }
OP(TruncatedNormal) {
  return RandomOp("Standard normal numbers; those outside [-2, 2] are drawn again.");
}
OP(RandomUniformInt) {
  return {
      .doc = "Uniform integers in [minval, maxval).",
      .inputs = {{"shape", "T"}, {"minval", "Tout"}, {"maxval", "Tout"}},
      .outputs = {{"output", "Tout"}},
      .types = {{"Tout", kIndex}, {"T", kIndex}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = ShapeFromInput,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 3}}}, {{.values = {0}}}, {{.values = {5}}}}}},
      .stateful = true,
  };
}

template <class T>
using UniformKernel = RandomKernel<Uniform, T>;
template <class T>
using NormalKernel = RandomKernel<Normal, T>;
template <class T>
using TruncatedNormalKernel = RandomKernel<TruncatedNormal, T>;
KERNEL_BY("dtype", RandomUniform, UniformKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", RandomStandardNormal, NormalKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", TruncatedNormal, TruncatedNormalKernel, half, bfloat16, float, double);
KERNEL_BY("Tout", RandomUniformInt, RandomUniformIntKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock
