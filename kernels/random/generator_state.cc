// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/generator_state.h"

#include <algorithm>

#include "kernels/array/arguments.h"
#include "kernels/random/random_stream.h"
#include "kernels/random/stateless_stream.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {

StatusOr<GeneratorState> SkipNumbers(KernelContext& ctx, uint64_t count) {
  ASSIGN_OR_RETURN(const int64_t algorithm, IntScalar(ctx.input(1), "alg"));
  if (algorithm != kPhiloxAlgorithm) {
    return InvalidArgument("alg is ", algorithm, "; there is only Philox (", kPhiloxAlgorithm, ")");
  }
  ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, DType::kInt64));
  Variable* const one[] = {variable.get()};
  GeneratorState before;
  const auto skip = [&](absl::Span<Tensor* const> values) -> Status {
    Tensor& state = *values[0];
    if (state.rank() != 1 || state.dim(0) < kGeneratorStateSize) {
      return InvalidArgument("For the Philox algorithm, the size of state must be at least ",
                             kGeneratorStateSize, "; its shape is ", state.shape().ToString());
    }
    int64_t* words = state.mutable_data<int64_t>();
    std::copy_n(words, kGeneratorStateSize, before.begin());
    const auto blocks = static_cast<unsigned __int128>(count) * RandomStream::kBlocksPerOutput;
    auto counter = static_cast<unsigned __int128>(static_cast<uint64_t>(words[1])) << 64 |
                   static_cast<uint64_t>(words[0]);
    counter += blocks;
    words[0] = static_cast<int64_t>(static_cast<uint64_t>(counter));
    words[1] = static_cast<int64_t>(static_cast<uint64_t>(counter >> 64));
    return OkStatus();
  };
  RETURN_IF_ERROR(Variable::Update(one, ctx.origin(), skip));
  return before;
}

Philox StreamAt(const GeneratorState& state) {
  return StreamAt(static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1]),
                  static_cast<uint64_t>(state[2]));
}

}  // namespace penstock
