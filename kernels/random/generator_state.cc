// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/generator_state.h"

#include <algorithm>

#include "kernels/array/arguments.h"
#include "kernels/random/stateless_stream.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

// The blocks that are reserved for each number: enough for every distribution.
constexpr uint64_t kBlocksPerNumber = 256;

}  // namespace

StatusOr<GeneratorState> SkipNumbers(KernelContext& ctx, uint64_t count) {
  ASSIGN_OR_RETURN(const int64_t algorithm, IntScalar(ctx.input(1), "alg"));
  if (algorithm != kPhiloxAlgorithm) {
    return InvalidArgument("alg is ", algorithm, "; there is only Philox (", kPhiloxAlgorithm, ")");
  }
  GeneratorState before;
  RETURN_IF_ERROR(UpdateVariableInput(ctx, DType::kInt64, [&](Tensor& state) -> Status {
    if (state.rank() != 1 || state.dim(0) < kGeneratorStateSize) {
      return InvalidArgument("For the Philox algorithm, the size of state must be at least ",
                             kGeneratorStateSize, "; its shape is ", state.shape().ToString());
    }
    int64_t* words = state.mutable_data<int64_t>();
    std::copy_n(words, kGeneratorStateSize, before.begin());
    const auto blocks = static_cast<unsigned __int128>(count) * kBlocksPerNumber;
    auto counter = static_cast<unsigned __int128>(static_cast<uint64_t>(words[1])) << 64 |
                   static_cast<uint64_t>(words[0]);
    counter += blocks;
    words[0] = static_cast<int64_t>(static_cast<uint64_t>(counter));
    words[1] = static_cast<int64_t>(static_cast<uint64_t>(counter >> 64));
    return OkStatus();
  }));
  return before;
}

Philox StreamAt(const GeneratorState& state) {
  const auto low = [&](int i) { return static_cast<uint32_t>(state[i]); };
  const auto high = [&](int i) {
    return static_cast<uint32_t>(static_cast<uint64_t>(state[i]) >> 32);
  };
  return Philox({low(0), high(0), low(1), high(1)}, {low(2), high(2)});
}

}  // namespace penstock
