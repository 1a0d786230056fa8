// SPDX-License-Identifier: Apache-2.0
//
// The routines of LAPACK and BLAS that decompositions are made of. (Eigen's would do as well, but
// its templates cost up to a minute of compile time per file.)
//
// Matrices are column-major, unless it says otherwise; n x m row-major memory is the m x n
// transposed matrix. One thread each; thread-safe. REQUIRES dimensions of 1 to kMaxLapackDim.
// Errors: false if the routine did not converge. CHECKs wrong arguments.
#pragma once

#include <complex>
#include <cstdint>

namespace penstock {

// The limit of LAPACK's integers: larger dimensions do not fit.
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

// Row-major from here on, without gaps.

// The lower triangle of a (n x n, positive definite) becomes its Cholesky factor; false if it is
// not positive definite. The upper triangle stays.
template <class T>
bool CholeskyFactor(int64_t n, T* a);

// a (n x n) = p l u, in place. pivots[i] is the row (from 1) that row i was exchanged with. Column-
// major a is factored as well as row-major: what is factored is the matrix that LAPACK sees.
template <class T>
void LuFactor(int64_t n, T* a, int* pivots);
// b (n x columns, column-major) becomes the solution of the system that LuFactor factored (column-
// major).
template <class T>
void LuSolve(int64_t n, int64_t columns, const T* lu, const int* pivots, T* b);

// b (n x columns) becomes the solution of a x = b or a^H x = b for a triangular a.
template <class T>
void TriangularSolve(bool lower, bool adjoint, int64_t n, int64_t columns, const T* a, T* b);

// c (m x n) = op(a) op(b), where op is nothing or the adjoint and the inner dimension is k.
template <class T>
void MatrixProduct(bool adjoint_a, bool adjoint_b, int64_t m, int64_t n, int64_t k, const T* a,
                   const T* b, T* c);

}  // namespace penstock
