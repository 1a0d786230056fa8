// SPDX-License-Identifier: Apache-2.0
//
// How much of a dataset runs at once, as programs say it: a number, or -1 for the runtime's choice.
// Numbers come from outside, so all of them are bounded.
#pragma once

#include <algorithm>

#include "kernels/dataset/dataset_kernel.h"

namespace penstock {

inline constexpr int64_t kAutotune = -1;
// Calls or datasets that are under way at once.
inline constexpr int64_t kParallelMax = 1024;

// Input `i`, num_parallel_calls, for a step on `ctx`'s threads.
inline StatusOr<int64_t> ParallelCallsInput(const KernelContext& ctx, int i) {
  int64_t calls = 0;
  if (ctx.input(i).dtype() == DType::kInt32) {
    ASSIGN_OR_RETURN(calls, ScalarInput<int32_t>(ctx, i, "num_parallel_calls"));
  } else {
    ASSIGN_OR_RETURN(calls, ScalarInput<int64_t>(ctx, i, "num_parallel_calls"));
  }
  if (calls == kAutotune) return std::max<int64_t>(1, ctx.threads().num_threads());
  if (calls < 1) return InvalidArgument("num_parallel_calls must be greater than zero.");
  return std::min(calls, kParallelMax);
}

// Input `i`, cycle_length.
inline StatusOr<int64_t> CycleLength(const KernelContext& ctx, int i) {
  ASSIGN_OR_RETURN(const int64_t cycle, ScalarInput<int64_t>(ctx, i, "cycle_length"));
  if (cycle == kAutotune) return std::max<int64_t>(1, ctx.threads().num_threads());
  if (cycle <= 0) return InvalidArgument("`cycle_length` must be > 0");
  if (cycle > kParallelMax) {
    return InvalidArgument("cycle_length must be at most ", kParallelMax, ", is ", cycle);
  }
  return cycle;
}

}  // namespace penstock
