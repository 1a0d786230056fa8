// SPDX-License-Identifier: Apache-2.0
//
// StochasticCastToInt: rounds numbers up or down at random, so that the mean of the results is the
// number.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/op/gradient.h"
#include "core/op/long_loop.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/random/distributions.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// The number of elements that share one block of the stream in TensorFlow's vectorized loop: 1 for
// the types whose loop is not vectorized.
template <class In, class Out>
constexpr int64_t kElementsPerBlock =
    std::is_same_v<Out, int32_t>&& std::is_same_v<In, float>    ? 8
    : std::is_same_v<Out, int32_t>&& std::is_same_v<In, double> ? 4
                                                                : 1;

// TensorFlow's vectorized loop makes vectors of this many integers; a rest goes one by one.
constexpr int64_t kVector = 8;

template <class In>
bool NeedsNumber(In x, double lowest, double largest) {
  const auto value = static_cast<double>(x);
  return value > lowest && value < largest && std::floor(value) != value;
}

// Rounds away from zero if `random`, a number in [0, 1), is less than the distance from zero to the
// next integer. Computes in the type of x and in the order of TensorFlow's two loops: `grouped` is
// the vectorized one. Values outside the range of Out become its limits, NaN becomes 0.
template <class Out, bool grouped, class In>
Out Round(In x, In random) {
  using Limits = std::numeric_limits<Out>;
  const auto value = static_cast<double>(x);
  if (std::isnan(value)) return 0;
  if (value >= Limits::max()) return Limits::max();
  if (value <= Limits::min()) return Limits::min();
  if (std::floor(value) == value) return static_cast<Out>(value);
  const In up = grouped ? In(x + In(In(1) - random)) : In(In(x + In(1)) - random);
  const In moved = value < 0 ? In(x + random) : up;
  const double rounded = std::floor(static_cast<double>(moved));
  return rounded >= Limits::max() ? Limits::max() : static_cast<Out>(rounded);
}

// Rounds elements [0, count), each with a block of its own if it needs a random number.
template <class Out, class In>
void RoundOneByOne(const In* in, int64_t count, Philox& stream, Out* out) {
  using Limits = std::numeric_limits<Out>;
  const Uniform<In> uniform;
  for (int64_t i = 0; i < count; ++i) {
    const In random = NeedsNumber(in[i], Limits::min(), Limits::max()) ? uniform(stream)[0] : In(0);
    out[i] = Round<Out, false>(in[i], random);
  }
}

template <class In, class Out>
class StochasticCastKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    // TensorFlow takes the key for the upper half of the counter, and the counter for the key.
    ASSIGN_OR_RETURN(const Philox given, KeyCounterInput(ctx, 1));
    Philox stream({0, 0, given.key()[0], given.key()[1]}, {given.counter()[0], given.counter()[1]});
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &output));
    const In* const in = ctx.input(0).data<In>();
    Out* const out = output->mutable_data<Out>();
    const int64_t count = output->num_elements();
    if constexpr (kElementsPerBlock < In, Out >> 1)
      return RoundInGroups(ctx, stream, in, count, out);
    // How many blocks an element uses depends on its value, so this loop has one thread.
    constexpr int64_t kPiece = 1 << 16;
    for (int64_t at = 0; at < count; at += kPiece) {
      if (at > 0) RETURN_IF_ERROR(CheckStepContinues(ctx.step()));
      RoundOneByOne(in + at, std::min(kPiece, count - at), stream, out + at);
    }
    return OkStatus();
  }

  // Rounds whole vectors with one block for each group, and the remaining elements one by one.
  static Status RoundInGroups(KernelContext& ctx, const Philox& start, const In* in, int64_t count,
                              Out* out) {
    constexpr int64_t kGroup = kElementsPerBlock<In, Out>;
    const int64_t groups = count / kVector * (kVector / kGroup);
    RETURN_IF_ERROR(LongLoop(ctx.step(), groups, 20, [&](int64_t begin, int64_t end) {
      Philox stream = start;
      stream.Skip(static_cast<uint64_t>(begin));
      for (int64_t i = begin * kGroup; i < end * kGroup; i += kGroup) {
        const auto numbers = Uniform<In>()(stream);
        for (int64_t k = 0; k < kGroup; ++k) {
          out[i + k] = Round<Out, true>(in[i + k], numbers[k % numbers.size()]);
        }
      }
    }));
    Philox stream = start;
    stream.Skip(static_cast<uint64_t>(groups));
    RoundOneByOne(in + groups * kGroup, count % kGroup, stream, out + groups * kGroup);
    return OkStatus();
  }
};

template <class Out, class... Ins>
std::vector<KernelDef> StochasticCastKernels() {
  return {KernelDef{.op = "StochasticCastToInt",
                    .types = {{"Tin", kDTypeOf<Ins>}, {"Tout", kDTypeOf<Out>}},
                    .make = Make<StochasticCastKernel<Ins, Out>>}...};
}

OP(StochasticCastToInt) {
  return {
      .doc =
          "Rounds each number up or down to an integer, at random, so that the mean of the results "
          "is the number. The random numbers are a function of key and counter. Numbers that do "
          "not fit become the smallest or largest integer of the type, NaN becomes 0.",
      .inputs = {{"input", "Tin"}, {"key", "uint64"}, {"counter", "uint64"}, {"alg", "int32"}},
      .outputs = {{"output", "Tout"}},
      .types = {{"Tin", kFloating}, {"Tout", {DType::kInt8, DType::kInt16, DType::kInt32}}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3, 4}}}, {{{1}}}, {{{2}}}, {{.values = {1}}}},
                    .attrs = {{"Tout", DType::kInt32}}}},
  };
}
const KernelDeclaration to_int8(StochasticCastKernels<int8_t, half, bfloat16, float, double>);
const KernelDeclaration to_int16(StochasticCastKernels<int16_t, half, bfloat16, float, double>);
const KernelDeclaration to_int32(StochasticCastKernels<int32_t, half, bfloat16, float, double>);

}  // namespace
}  // namespace penstock
