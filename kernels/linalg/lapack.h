// SPDX-License-Identifier: Apache-2.0
//
// The routines of LAPACK and BLAS that the decompositions use. (Eigen has the same decompositions,
// but its templates cost up to a minute of compile time per file.)
//
// Matrices are column-major unless stated otherwise; a row-major n x m matrix is the transposed m x
// n matrix in column-major order. One thread per call; thread-safe. REQUIRES: dimensions from 1 to
// kMaxLapackDim. Functions that return bool return false if the routine did not converge. Wrong
// arguments fail a CHECK.
#pragma once

#include <complex>
#include <cstdint>

namespace penstock {

// The largest dimension that LAPACK's integers can hold.
inline constexpr int64_t kMaxLapackDim = INT32_MAX;

// Computes a (rows x cols, destroyed) = u diag(s) vh, s descending. `job` is 'N' (no vectors), 'S'
// (as many vectors as singular values) or 'A' (all vectors).
template <class T, class R>
bool SingularValues(char job, int64_t rows, int64_t cols, T* a, R* s, T* u, T* vh);

// Computes the eigenvalues of a (n x n), ascending, reading only the triangle `triangle` ('L' or
// 'U'). If `vectors`, the columns of a become the eigenvectors.
template <class T, class R>
bool SelfAdjointEigenvalues(char triangle, bool vectors, int64_t n, T* a, R* values);

// Finds the x of least norm that minimises |a x - b|. b (max(rows, cols) x columns) holds the right
// side in its first `rows` rows, and x in its first `cols` rows afterwards; a (rows x cols) is
// destroyed.
template <class T>
bool LeastSquares(int64_t rows, int64_t cols, int64_t columns, T* a, T* b);

// Factors a (rows x cols) = q r. a becomes its Householder factors, with r as the upper triangle.
// The columns of q (rows x q_cols, where q_cols is min(rows, cols) or rows) become orthonormal.
template <class T>
void QrFactors(int64_t rows, int64_t cols, T* a, int64_t q_cols, T* q);

// The matrices below are contiguous, and row-major unless stated otherwise.

// Replaces the lower triangle of a (n x n, positive definite) by its Cholesky factor; returns false
// if a is not positive definite. The upper triangle is unchanged.
template <class T>
bool CholeskyFactor(int64_t n, T* a);

// Factors a (n x n) = p l u, in place. pivots[i] is the row (from 1) exchanged with row i.
// LAPACK reads a as column-major; if it is row-major, the factors are those of its transpose.
template <class T>
void LuFactor(int64_t n, T* a, int* pivots);
// Replaces b (n x columns, column-major) by the solution of the system whose column-major matrix
// LuFactor factored.
template <class T>
void LuSolve(int64_t n, int64_t columns, const T* lu, const int* pivots, T* b);

// Replaces b (n x columns) by the solution of a x = b, or of a^H x = b if `adjoint`, for a
// triangular a.
template <class T>
void TriangularSolve(bool lower, bool adjoint, int64_t n, int64_t columns, const T* a, T* b);

// Computes c (m x n) = op(a) op(b), where op is the identity or the adjoint, and the inner
// dimension is k.
template <class T>
void MatrixProduct(bool adjoint_a, bool adjoint_b, int64_t m, int64_t n, int64_t k, const T* a,
                   const T* b, T* c);

}  // namespace penstock
