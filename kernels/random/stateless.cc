// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are a function of an input `seed`: StatelessRandomUniform,
// StatelessRandomNormal, StatelessTruncatedNormal, StatelessRandomUniformInt and -FullInt. Their V2
// forms take a key and a counter, which StatelessRandomGetKeyCounter makes from such a seed, and
// the algorithm that StatelessRandomGetAlg returns.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/fill_random.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// Reads the stream from the first `inputs` inputs: two are (shape, seed), four are (shape, key,
// counter, alg). Errors as those of SeedInput and KeyCounterInput.
StatusOr<Philox> StreamOf(const KernelContext& ctx, int inputs) {
  return inputs == 2 ? SeedInput(ctx.input(1)) : KeyCounterInput(ctx, 1);
}

class KeyCounterKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Philox stream, SeedInput(ctx.input(0)));
    const auto join = [](uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; };
    Tensor *key, *counter;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({1}), &key));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape({2}), &counter));
    key->mutable_data<uint64_t>()[0] = join(stream.key()[0], stream.key()[1]);
    for (int i : {0, 1}) {
      counter->mutable_data<uint64_t>()[i] =
          join(stream.counter()[2 * i], stream.counter()[2 * i + 1]);
    }
    if (ctx.num_outputs() == 2) return OkStatus();
    Tensor* algorithm;
    RETURN_IF_ERROR(ctx.Allocate(2, Shape(), &algorithm));
    *algorithm->mutable_data<int32_t>() = kPhiloxAlgorithm;
    return OkStatus();
  }
};

class AlgorithmKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar<int32_t>(kPhiloxAlgorithm));
    return OkStatus();
  }
};

template <template <class> class Distribution, class T>
class StatelessKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    ASSIGN_OR_RETURN(const Philox stream, StreamOf(ctx, ctx.num_inputs()));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    return FillRandom(stream, Distribution<T>(), output->mutable_data<T>(), shape.num_elements(),
                      ctx.step());
  }
};

template <class T>
class StatelessUniformIntKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    const int bounds = ctx.num_inputs() - 2;
    ASSIGN_OR_RETURN(const Philox stream, StreamOf(ctx, bounds));
    const Tensor &low = ctx.input(bounds), &high = ctx.input(bounds + 1);
    if (low.rank() != 0 || high.rank() != 0) {
      return InvalidArgument("minval and maxval must be scalars, have shapes ",
                             low.shape().ToString(), " and ", high.shape().ToString());
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() == 0) return OkStatus();
    if (low.scalar<T>() >= high.scalar<T>()) {
      return InvalidArgument("Need minval < maxval, got ", low.scalar<T>(),
                             " >= ", high.scalar<T>());
    }
    return FillRandom(stream, UniformInt<T>(low.scalar<T>(), high.scalar<T>()),
                      output->mutable_data<T>(), shape.num_elements(), ctx.step());
  }
};

Status StatelessV2Shape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Status KeyCounterShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  RETURN_IF_ERROR(SetOutput(s, 0, {1}));
  RETURN_IF_ERROR(SetOutput(s, 1, {2}));
  return s.num_outputs() == 3 ? SetOutput(s, 2, {}) : OkStatus();
}

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

OpDef StatelessV2Op(const char* doc) {
  OpDef op = StatelessOp(doc);
  op.inputs = {{"shape", "Tshape"}, {"key", "uint64"}, {"counter", "uint64"}, {"alg", "int32"}};
  op.types = {{"dtype", kFloating, DType::kFloat}, {"Tshape", kIndex, DType::kInt32}};
  op.shape = StatelessV2Shape;
  op.examples = {{.inputs = {{{{2}, {2, 3}}}, {{{1}}}, {{{2}}}, {{.values = {1}}}}}};
  return op;
}

// Returns `op` for integers in [minval, maxval), which are inputs.
OpDef InBounds(OpDef op) {
  op.inputs.push_back({"minval", "dtype"});
  op.inputs.push_back({"maxval", "dtype"});
  op.types[0] = {"dtype", kIndex};
  op.examples[0].inputs.push_back({{.values = {0}}});
  op.examples[0].inputs.push_back({{.values = {5}}});
  return op;
}
// Returns `op` for integers over all values of the type.
OpDef OfAllBits(OpDef op) {
  op.types[0] = {
      "dtype", {DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64}, DType::kUint64};
  return op;
}

OpDef KeyCounterOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"seed", "Tseed"}},
      .outputs = {{"key", "uint64"}, {"counter", "uint64"}},
      .types = {{"Tseed", kIndex, DType::kInt64}},
      .shape = KeyCounterShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {1, 2}}}}}},
  };
}
OpDef KeyCounterAlgOp() {
  OpDef op = KeyCounterOp(
      "Returns the key and counter that the V2 ops derive from a seed, and the number "
      "of their algorithm.");
  op.outputs.push_back({"alg", "int32"});
  return op;
}

OP(StatelessRandomUniformV2) {
  return StatelessV2Op("Uniform numbers in [0, 1), a function of key and counter.");
}

OP(StatelessRandomNormalV2) {
  return StatelessV2Op("Standard normal numbers, a function of key and counter.");
}

OP(StatelessTruncatedNormalV2) {
  return StatelessV2Op(
      "Standard normal numbers truncated to [-2, 2], a function of key and counter.");
}

OP(StatelessRandomUniformInt) {
  return InBounds(StatelessOp("Uniform integers in [minval, maxval), a function of the seed."));
}

OP(StatelessRandomUniformIntV2) {
  return InBounds(
      StatelessV2Op("Uniform integers in [minval, maxval), a function of key and counter."));
}

OP(StatelessRandomUniformFullInt) {
  return OfAllBits(
      StatelessOp("Uniform integers over all values of the type, a function of the seed."));
}

OP(StatelessRandomUniformFullIntV2) {
  return OfAllBits(StatelessV2Op(
      "Uniform integers over all values of the type, a function of key and counter."));
}

OP(StatelessRandomGetKeyCounter) {
  return KeyCounterOp("Returns the key and counter that the V2 ops derive from a seed.");
}
OP(StatelessRandomGetKeyCounterAlg) { return KeyCounterAlgOp(); }
OP(StatelessRandomGetAlg) {
  return {
      .doc = "Returns the number of the algorithm of the V2 ops: Philox.",
      .outputs = {{"alg", "int32"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{}},
  };
}

OP(StatelessRandomUniform) {
  return StatelessOp("Uniform numbers in [0, 1), a function of the seed.");
}

OP(StatelessRandomNormal) {
  return StatelessOp("Standard normal numbers, a function of the seed.");
}

OP(StatelessTruncatedNormal) {
  return StatelessOp("Standard normal numbers truncated to [-2, 2], a function of the seed.");
}

template <class T>
using StatelessUniformKernel = StatelessKernel<Uniform, T>;
template <class T>
using StatelessNormalKernel = StatelessKernel<Normal, T>;
template <class T>
using StatelessTruncatedNormalKernel = StatelessKernel<TruncatedNormal, T>;
KERNEL_BY("dtype", StatelessRandomUniform, StatelessUniformKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatelessRandomNormal, StatelessNormalKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatelessTruncatedNormal, StatelessTruncatedNormalKernel, half, bfloat16, float,
          double);
KERNEL_BY("dtype", StatelessRandomUniformV2, StatelessUniformKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatelessRandomNormalV2, StatelessNormalKernel, half, bfloat16, float, double);
KERNEL_BY("dtype", StatelessTruncatedNormalV2, StatelessTruncatedNormalKernel, half, bfloat16,
          float, double);
template <class T>
using StatelessUniformBitsKernel = StatelessKernel<UniformBits, T>;
KERNEL_BY("dtype", StatelessRandomUniformInt, StatelessUniformIntKernel, int32_t, int64_t);
KERNEL_BY("dtype", StatelessRandomUniformIntV2, StatelessUniformIntKernel, int32_t, int64_t);
KERNEL_BY("dtype", StatelessRandomUniformFullInt, StatelessUniformBitsKernel, int32_t, int64_t,
          uint32_t, uint64_t);
KERNEL_BY("dtype", StatelessRandomUniformFullIntV2, StatelessUniformBitsKernel, int32_t, int64_t,
          uint32_t, uint64_t);
KERNEL_ANY_TYPE(StatelessRandomGetKeyCounter, KeyCounterKernel);
KERNEL_ANY_TYPE(StatelessRandomGetKeyCounterAlg, KeyCounterKernel);
KERNEL_ANY_TYPE(StatelessRandomGetAlg, AlgorithmKernel);

}  // namespace
}  // namespace penstock
