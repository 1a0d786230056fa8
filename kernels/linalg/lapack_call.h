// SPDX-License-Identifier: Apache-2.0
//
// Helpers for calls of LAPACK and BLAS: convert sizes, limit the calls to one thread, and check
// their results.
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

// Stops OpenBLAS from starting threads: the kernels already run on the runtime's threads.
inline void LimitOpenBlasToOneThread() {
  [[maybe_unused]] static const bool once = (openblas_set_num_threads(1), true);
}

inline bool Succeeded(int info) {
  CHECK(info >= 0, "LAPACK: argument ", -info, " is wrong");
  return info == 0;
}

}  // namespace penstock
