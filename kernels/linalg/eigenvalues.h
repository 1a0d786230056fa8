// SPDX-License-Identifier: Apache-2.0
//
// Eigenvalues of general (not necessarily symmetric) matrices, by LAPACK. Each call runs on one
// thread; thread-safe.
#pragma once

#include <complex>
#include <cstdint>

namespace penstock {

// Computes the eigenvalues of a (n x n, column-major, destroyed; n is 1 to kMaxLapackDim). If
// `vectors` is not null, also the eigenvectors, each of length 1, as its columns (n x n,
// column-major). C is the complex type of T. Returns false if the routine did not converge.
template <class T, class C>
bool Eigenvalues(int64_t n, T* a, C* values, C* vectors);

}  // namespace penstock
