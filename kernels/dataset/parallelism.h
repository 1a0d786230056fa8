// SPDX-License-Identifier: Apache-2.0
//
// Reads inputs that set the number of calls or datasets that run at once: a number, or -1 to let
// the runtime choose. The numbers come from untrusted programs, so they are bounded.
#pragma once

#include <algorithm>

#include "kernels/dataset/dataset_kernel.h"

namespace penstock {

inline constexpr int64_t kAutotune = -1;
// The maximum number of calls or datasets that run at once.
inline constexpr int64_t kParallelMax = 1024;

// Returns the number of calls that input `i` (num_parallel_calls) requests; for -1, the number of
// threads of `ctx`. At most kParallelMax. InvalidArgument if the input is 0 or less than -1.
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

// Returns input `i` (cycle_length), the number of datasets that are read in turns; for -1, the
// number of threads of `ctx`. InvalidArgument if the input is not from 1 to kParallelMax.
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
