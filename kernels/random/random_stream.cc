// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/random_stream.h"

namespace penstock {

Status RandomStream::Init(const KernelInit& node) {
  int64_t seed, seed2;
  RETURN_IF_ERROR(node.Attr("seed", &seed));
  RETURN_IF_ERROR(node.Attr("seed2", &seed2));
  seed_ = static_cast<uint64_t>(seed);
  seed2_ = static_cast<uint64_t>(seed2);
  return OkStatus();
}

Philox RandomStream::Reserve(uint64_t blocks, Env& env) {
  std::call_once(seeded_, [&] {
    if (seed_ != 0 || seed2_ != 0) return;
    seed_ = env.RandomU64();
    seed2_ = env.RandomU64();
  });
  Philox stream = Philox::FromSeeds(seed_, seed2_);
  stream.Skip(next_block_.fetch_add(blocks, std::memory_order_relaxed));
  return stream;
}

}  // namespace penstock
