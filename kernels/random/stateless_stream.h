// SPDX-License-Identifier: Apache-2.0
//
// The streams of random numbers that are a function of inputs: of a seed, or, in the V2 ops, of a
// key and a counter made from such a seed. Thread-safe.
#pragma once

#include <cstdint>

#include "core/op/kernel.h"
#include "kernels/random/philox.h"

namespace penstock {

// The values of the V2 ops' input `alg`.
inline constexpr int32_t kPhiloxAlgorithm = 1, kAnyAlgorithm = 3;

// Returns the stream that starts at a counter of 128 bits, given as two halves.
Philox StreamAt(uint64_t counter_low, uint64_t counter_high, uint64_t key);
// Returns the stream of a seed of two numbers. InvalidArgument if the input is something else.
StatusOr<Philox> SeedInput(const Tensor& seed);
// Returns the stream of the inputs key, counter and alg, of which key is input `first`.
// InvalidArgument if one has a wrong shape, Unimplemented if alg is not Philox.
StatusOr<Philox> KeyCounterInput(const KernelContext& ctx, int first);

}  // namespace penstock
