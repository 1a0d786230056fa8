// SPDX-License-Identifier: Apache-2.0
//
// Products of a matrix and a vector. They take as long as reading the matrix once, in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/scheduler.h"

namespace penstock {

// The time to read one element, if the memory's bandwidth is about 20 GB/s.
template <class T>
inline constexpr double kNanosPerMatrixElement = 0.05 * sizeof(T);

// Computes the dot products of `kRows` neighbouring rows with x. The rows share the loads of x, and
// their sums are in different vector registers, so they do not wait for each other.
template <int kRows, class T>
void DotRows(int64_t n, const T* matrix, const T* x, T* y) {
  typedef T Vector __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  constexpr int kWidth = 32 / sizeof(T);
  const auto at = [](const T* p) { return *reinterpret_cast<const Vector*>(p); };
  Vector sums[kRows][2] = {};
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    const Vector first = at(x + i), second = at(x + i + kWidth);
    for (int r = 0; r < kRows; ++r) {
      const T* row = matrix + r * n + i;
      sums[r][0] += at(row) * first;
      sums[r][1] += at(row + kWidth) * second;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const Vector both = sums[r][0] + sums[r][1];
    T sum = 0;
    for (int j = 0; j < kWidth; ++j) sum += both[j];
    for (int64_t k = i; k < n; ++k) sum += matrix[r * n + k] * x[k];
    y[r] = sum;
  }
}

// Computes y[r] = sum of matrix[r, i] * x[i]; the matrix is [rows, n].
template <class T>
void DotProducts(Scheduler& threads, int64_t rows, int64_t n, const T* matrix, const T* x, T* y) {
  constexpr int64_t kRows = 4;
  const int64_t groups = (rows + kRows - 1) / kRows;
  threads.ParallelFor(groups, kNanosPerMatrixElement<T> * n * kRows,
                      [&](int64_t begin, int64_t end) {
                        int64_t r = begin * kRows;
                        const int64_t last = std::min(rows, end * kRows);
                        for (; r + kRows <= last; r += kRows) {
                          DotRows<kRows>(n, matrix + r * n, x, y + r);
                        }
                        for (; r < last; ++r) DotRows<1>(n, matrix + r * n, x, y + r);
                      });
}

// Computes y[j] = sum of x[r] * matrix[r, j]; the matrix is [rows, n]. Handles eight rows at once,
// so that y is read and written an eighth as often.
template <class T>
void SumOfRows(Scheduler& threads, int64_t rows, int64_t n, const T* matrix, const T* x, T* y) {
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
