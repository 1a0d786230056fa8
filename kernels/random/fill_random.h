// SPDX-License-Identifier: Apache-2.0
//
// FillRandom: fills an array with random numbers, which do not depend on the number of threads.
// Stops when the step is cancelled.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op/long_loop.h"
#include "kernels/random/distributions.h"

namespace penstock {

// Fills out[0, count) with random numbers. Group g of the numbers is made from the kBlocksPerGroup
// blocks that begin at block g * kBlocksPerGroup. If the step is cancelled, returns the step's
// error.
template <class Distribution>
Status FillRandom(const Philox& start, const Distribution& distribution,
                  typename Distribution::Result* out, int64_t count, const StepContext& step) {
  constexpr int64_t kGroup = kPerBlock<typename Distribution::Result>;
  const int64_t groups = count / kGroup + (count % kGroup != 0);
  return LongLoop(
      step, groups, 5 + kGroup * Distribution::kCostNanos, [&](int64_t begin, int64_t end) {
        Philox stream = start;
        if constexpr (Distribution::kBlocksPerGroup == 1) stream.Skip(begin);
        for (int64_t g = begin; g < end; ++g) {
          if constexpr (Distribution::kBlocksPerGroup != 1) {
            stream = start;
            stream.Skip(g * Distribution::kBlocksPerGroup);
          }
          const auto group = distribution(stream);
          std::copy_n(group.begin(), std::min(kGroup, count - g * kGroup), out + g * kGroup);
        }
      });
}

}  // namespace penstock
