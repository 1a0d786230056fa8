// SPDX-License-Identifier: Apache-2.0
//
// The LAPACK routines that decompositions use where Eigen's templates cost a minute of compile time
// per file: singular values, self-adjoint eigenproblems, least squares of any rank, QR.
//
// Matrices are column-major; n x m row-major memory is the m x n transposed matrix. Thread-safe.
// Errors: false where the routine did not converge. CHECKs wrong arguments.
#pragma once

#include <complex>
#include <cstdint>

namespace penstock {

// What LAPACK counts with: dimensions above do not fit.
inline constexpr int64_t kMaxLapackDim = INT32_MAX;

// a (rows x cols, destroyed) = u diag(s) vh, s descending. `job` is 'N' (no vectors), 'S' (as many
// as singular values) or 'A' (all of them).
template <class T, class R>
bool SingularValues(char job, int64_t rows, int64_t cols, T* a, R* s, T* u, T* vh);

// The eigenvalues of a (n x n), ascending, of which `triangle` ('L' or 'U') is read; with
// `vectors`, the columns of a become the eigenvectors.
template <class T, class R>
bool SelfAdjointEigenvalues(char triangle, bool vectors, int64_t n, T* a, R* values);

// x in b (max(rows, cols) x columns; its first rows hold the right side) becomes the shortest x for
// which |a x - b| is least; a (rows x cols) is destroyed.
template <class T>
bool LeastSquares(int64_t rows, int64_t cols, int64_t columns, T* a, T* b);

// a (rows x cols) becomes its Householder factors: r is its upper triangle. q (rows x q_cols, where
// q_cols is min(rows, cols) or rows) becomes the orthonormal columns.
template <class T>
void QrFactors(int64_t rows, int64_t cols, T* a, int64_t q_cols, T* q);

}  // namespace penstock
