// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on the CPU: c = op(a) op(b); all matrices are row-major and contiguous.
//
// The product is computed by OpenBLAS, oneDNN or our own loops, whichever is fastest for the shape
// (matmul_benchmark.cc). Each library call uses one thread; the work is split over the runtime's
// own pool.
#pragma once

#include <cstdint>

#include "core/base/scheduler.h"

namespace penstock {

enum class Side { kPlain, kTransposed, kAdjoint };  // kAdjoint: transposed and conjugated

// op(a) is [m, k], op(b) is [k, n], c is [m, n]. If a is transposed (kTransposed, kAdjoint), its
// memory is [k, m].
struct Product {
  int64_t m = 0, n = 0, k = 0;
  Side a = Side::kPlain, b = Side::kPlain;
};

// Computes the product. T is float, double, std::complex of them, or int16_t, int32_t, int64_t
// (which wrap around). REQUIRES: m, n, k < 2^31. With k = 0 the result is zero.
template <class T>
void Multiply(Scheduler& threads, const Product& p, const T* a, const T* b, T* c);

}  // namespace penstock
