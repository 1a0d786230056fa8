// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/stateless_stream.h"

#include "kernels/array/arguments.h"

namespace penstock {
namespace {

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// Returns the uint64 words of a vector. InvalidArgument unless it has `count` elements, or, if
// `at_least`, `count` or more.
StatusOr<absl::Span<const uint64_t>> Words(const Tensor& tensor, const char* name, int64_t count,
                                           bool at_least = false) {
  if (tensor.rank() == 1 && (at_least ? tensor.dim(0) >= count : tensor.dim(0) == count)) {
    return tensor.flat<uint64_t>();
  }
  return InvalidArgument(name, " must have shape [", count, "], has ", tensor.shape().ToString());
}

}  // namespace

Philox StreamAt(uint64_t counter_low, uint64_t counter_high, uint64_t key) {
  return Philox({Low(counter_low), High(counter_low), Low(counter_high), High(counter_high)},
                {Low(key), High(key)});
}

StatusOr<Philox> SeedInput(const Tensor& tensor) {
  ASSIGN_OR_RETURN(const Dims seed, IntVector(tensor, "seed", 2));
  const auto seed0 = static_cast<uint64_t>(seed[0]), seed1 = static_cast<uint64_t>(seed[1]);
  // Mixes the two seeds by one block under a fixed key, so that seeds which differ in few bits give
  // unrelated streams.
  const Philox::Key fixed = {0x3ec8f720, 0x02461e29};
  const Philox::Block mix = Philox({Low(seed0), High(seed0), Low(seed1), High(seed1)}, fixed)();
  return Philox({0, 0, mix[2], mix[3]}, {mix[0], mix[1]});
}

StatusOr<Philox> KeyCounterInput(const KernelContext& ctx, int first) {
  ASSIGN_OR_RETURN(const auto key, Words(ctx.input(first), "key", 1));
  ASSIGN_OR_RETURN(const auto counter, Words(ctx.input(first + 1), "counter", 2, true));
  ASSIGN_OR_RETURN(const int64_t algorithm, IntScalar(ctx.input(first + 2), "alg"));
  if (algorithm != kPhiloxAlgorithm && algorithm != kAnyAlgorithm) {
    return Unimplemented("alg is ", algorithm, ", there is only Philox (", kPhiloxAlgorithm, ")");
  }
  return StreamAt(counter[0], counter[1], key[0]);
}

}  // namespace penstock
