// SPDX-License-Identifier: Apache-2.0
//
// Batches of matrix products on the CPU: the functions that matmul.h takes as MultiplyFn, per
// element type. 16-bit floats are multiplied as float.
#pragma once

#include "kernels/engine/float16_blocks.h"
#include "kernels/engine/functor.h"
#include "kernels/math/matmul.h"

namespace penstock {

// Computes small products in parallel, and large ones one after the other, each on all threads.
template <class T>
void MultiplyPairs(Scheduler& threads, const Product& p, const MatrixPairs& pairs, const T* a,
                   const T* b, T* c) {
  const double nanos = 2.0 * p.m * p.n * p.k / 100;
  const auto multiply = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Multiply(threads, p, a + pairs.a[i] * p.m * p.k, b + pairs.b[i] * p.k * p.n,
               c + i * p.m * p.n);
    }
  };
  const int64_t count = static_cast<int64_t>(pairs.a.size());
  if (count < threads.num_threads()) return multiply(0, count);
  threads.ParallelFor(count, nanos, multiply);
}

template <class T>
Status MultiplyOnCpu(KernelContext& ctx, const Product& product, const MatrixPairs& pairs,
                     const Tensor& a, const Tensor& b, Tensor* c) {
  if constexpr (kIsHalf<T>) {
    ASSIGN_OR_RETURN(const Tensor left, AsFloats(ctx, a));
    ASSIGN_OR_RETURN(const Tensor right, AsFloats(ctx, b));
    ASSIGN_OR_RETURN(Tensor sums, ctx.Temporary(DType::kFloat, c->shape()));
    MultiplyPairs(ctx.threads(), product, pairs, left.data<float>(), right.data<float>(),
                  sums.mutable_data<float>());
    FloatToFloat16(c->dtype(), sums.data<float>(), c->mutable_raw_data(), c->num_elements());
  } else {
    MultiplyPairs(ctx.threads(), product, pairs, a.data<T>(), b.data<T>(), c->mutable_data<T>());
  }
  return OkStatus();
}

}  // namespace penstock
