// SPDX-License-Identifier: Apache-2.0
//
// Generator: a random node's place in its stream. Seeds come from the attributes `seed` and
// `seed2`; where both are 0, from the environment.
//
// Thread-safe. Each execution reserves a stretch of the stream that no other execution gets; a
// second run of the node goes on where the first ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/op/kernel.h"
#include "kernels/random/philox.h"

namespace penstock {

class Generator {
 public:
  Status Init(const KernelInit& node) {
    int64_t seed = 0, seed2 = 0;
    RETURN_IF_ERROR(node.Attr("seed", &seed));
    RETURN_IF_ERROR(node.Attr("seed2", &seed2));
    if (seed == 0 && seed2 == 0) {
      seed = static_cast<int64_t>(Env::Real().RandomU64());
      seed2 = static_cast<int64_t>(Env::Real().RandomU64());
    }
    start_ = Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
    return OkStatus();
  }

  // The next `blocks` draws, for the caller alone.
  Philox Reserve(uint64_t blocks) {
    Philox mine = start_;
    mine.Skip(used_.fetch_add(blocks, std::memory_order_relaxed));
    return mine;
  }

  // Enough for `samples` numbers even where a number is drawn again and again until it fits. (Four
  // times enough: TensorFlow counts blocks where words would do, and its streams are ours.)
  Philox ReserveForSamples(int64_t samples) {
    return Reserve(static_cast<uint64_t>(samples) * kWordsPerSample);
  }
  static constexpr uint64_t kWordsPerSample = 256;

 private:
  Philox start_;
  std::atomic<uint64_t> used_{0};
};

// Hands out the words of a Philox one at a time.
class WordStream {
 public:
  explicit WordStream(const Philox& philox) : philox_(philox) {}
  uint32_t Next() {
    if (left_ == 0) {
      words_ = philox_.Next();
      left_ = 4;
    }
    return words_[4 - left_--];
  }
  uint64_t Next64() {
    const uint64_t low = Next();
    return low | uint64_t{Next()} << 32;
  }

 private:
  Philox philox_;
  Philox::Words words_ = {};
  int left_ = 0;
};

}  // namespace penstock
