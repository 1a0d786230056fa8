// SPDX-License-Identifier: Apache-2.0
//
// Converts sizes for calls of LAPACK and BLAS, keeps them on one thread, and checks their results.
#pragma once

#include <cblas.h>

#include <cstdint>

#include "core/base/check.h"
#include "kernels/linalg/lapack.h"

namespace penstock {

inline int LapackInt(int64_t n) {
  CHECK(n >= 0 && n <= kMaxLapackDim);
  return static_cast<int>(n);
}

// Our threads are the runtime's: OpenBLAS must not start its own.
inline void OneThread() {
  [[maybe_unused]] static const bool once = (openblas_set_num_threads(1), true);
}

inline bool Succeeded(int info) {
  CHECK(info >= 0, "LAPACK: argument ", -info, " is wrong");
  return info == 0;
}

}  // namespace penstock
