// SPDX-License-Identifier: Apache-2.0
//
// Eigenvalues of matrices that need not be symmetric, by LAPACK. One thread each; thread-safe.
#pragma once

#include <complex>
#include <cstdint>

namespace penstock {

// The eigenvalues of a (n x n, column-major, destroyed; n is 1 to kMaxLapackDim) and, where
// `vectors` is not null, the eigenvectors, each of length 1, as its columns (n x n, column-major).
// C is the complex type of T. False where the routine did not converge.
template <class T, class C>
bool Eigenvalues(int64_t n, T* a, C* values, C* vectors);

}  // namespace penstock
