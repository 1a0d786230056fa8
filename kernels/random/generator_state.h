// SPDX-License-Identifier: Apache-2.0
//
// The state of a random number generator (tf.random.Generator): a variable that is a vector of
// int64: Philox's counter (two numbers) and its key.
#pragma once

#include <array>
#include <cstdint>

#include "core/op/kernel.h"
#include "kernels/random/philox.h"

namespace penstock {

inline constexpr int64_t kGeneratorStateSize = 3;
using GeneratorState = std::array<int64_t, kGeneratorStateSize>;

// Advances the generator behind input 0 by the blocks for `count` numbers, as one change, and
// returns its state before. Input 1 is the number of the algorithm. InvalidArgument unless that is
// Philox, and the state is a vector of at least kGeneratorStateSize numbers.
StatusOr<GeneratorState> SkipNumbers(KernelContext& ctx, uint64_t count);

// Returns the stream at a state.
Philox StreamAt(const GeneratorState& state);

}  // namespace penstock
