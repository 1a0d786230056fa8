// SPDX-License-Identifier: Apache-2.0
//
// Products of a matrix and a vector. They are bound by reading the matrix, once, in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/thread_pool.h"

namespace penstock {

// About 20 GB/s.
template <class T>
inline constexpr double kNanosPerMatrixElement = 0.05 * sizeof(T);

// y[r] = sum of matrix[r, i] * x[i]; the matrix is [rows, n].
template <class T>
void DotProducts(ThreadPool& threads, int64_t rows, int64_t n, const T* matrix, const T* x, T* y) {
  constexpr int kLanes = 128 / sizeof(T);
  threads.ParallelFor(rows, kNanosPerMatrixElement<T> * n, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = matrix + r * n;
      T lanes[kLanes] = {};
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes) {
        for (int j = 0; j < kLanes; ++j) lanes[j] += row[i + j] * x[i + j];
      }
      for (int j = 0; i < n; ++i, ++j) lanes[j] += row[i] * x[i];
      for (int width = kLanes / 2; width > 0; width /= 2) {
        for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
      }
      y[r] = lanes[0];
    }
  });
}

// y[j] = sum of x[r] * matrix[r, j]; the matrix is [rows, n]. Eight rows at once, so that y is read
// and written an eighth as often.
template <class T>
void SumOfRows(ThreadPool& threads, int64_t rows, int64_t n, const T* matrix, const T* x, T* y) {
  constexpr int64_t kStrip = 256;
  const int64_t strips = (n + kStrip - 1) / kStrip;
  const double nanos = kNanosPerMatrixElement<T> * rows * std::min(n, kStrip);
  threads.ParallelFor(strips, nanos, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kStrip, width = std::min(n, end * kStrip) - first;
    T* to = y + first;
    std::fill_n(to, width, T(0));
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
      const T* m = matrix + r * n + first;
      const T* w = x + r;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        to[j] += ((w[0] * m[j] + w[1] * m[j + n]) + (w[2] * m[j + 2 * n] + w[3] * m[j + 3 * n])) +
                 ((w[4] * m[j + 4 * n] + w[5] * m[j + 5 * n]) +
                  (w[6] * m[j + 6 * n] + w[7] * m[j + 7 * n]));
      }
    }
    for (; r < rows; ++r) {
      const T* m = matrix + r * n + first;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) to[j] += x[r] * m[j];
    }
  });
}

}  // namespace penstock
