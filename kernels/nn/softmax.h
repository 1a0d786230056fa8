// SPDX-License-Identifier: Apache-2.0
//
// Softmax of rows, shared by Softmax, LogSoftmax and the cross-entropy ops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/tensor/float16.h"
#include "kernels/engine/vector_math.h"

namespace penstock {

// The type in which a row is computed.
template <class T>
using SoftmaxFloat = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The approximate cost of one element, for ParallelFor.
inline constexpr double kSoftmaxNanos = 2;

// MaxOf returns the largest of n numbers, SumOf their sum. Both use eight lanes, which fill a
// vector register.
template <class F, class T>
F MaxOf(const T* x, int64_t n) {
  F lanes[8];
  std::fill_n(lanes, 8, -std::numeric_limits<F>::infinity());
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) {
      const F v = static_cast<F>(x[i + k]);
      lanes[k] = v > lanes[k] ? v : lanes[k];
    }
  }
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], static_cast<F>(x[i]));
  return *std::max_element(lanes, lanes + 8);
}
template <class F>
F SumOf(const F* x, int64_t n) {
  F lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) lanes[k] += x[i + k];
  }
  for (; i < n; ++i) lanes[0] += x[i];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// Computes shifted[i] = x[i] - m, where m is the largest x, and exps[i] = exp(shifted[i]). Returns
// the sum of exps. `shifted` or `exps` may be null. REQUIRES: n > 0.
template <class T>
SoftmaxFloat<T> ShiftAndExponentiate(const T* x, int64_t n, SoftmaxFloat<T>* shifted,
                                     SoftmaxFloat<T>* exps) {
  using F = SoftmaxFloat<T>;
  const F max = MaxOf<F>(x, n);
  // Summing in blocks keeps the rounding error small.
  constexpr int64_t kBlock = 128;
  F total = 0;
  F block[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    for (int64_t i = 0; i < count; ++i) block[i] = static_cast<F>(x[begin + i]) - max;
    if (shifted != nullptr) std::copy_n(block, count, shifted + begin);
    for (int64_t i = 0; i < count; ++i) block[i] = std::exp(block[i]);
    if (exps != nullptr) std::copy_n(block, count, exps + begin);
    total += SumOf(block, count);
  }
  return total;
}

}  // namespace penstock
