// SPDX-License-Identifier: Apache-2.0
//
// The LAPACK and BLAS routines that work in place.
#include "kernels/linalg/lapack.h"

#include "kernels/linalg/lapack_call.h"

extern "C" {

// The Fortran interface: all arguments are addresses, and int has 32 bits.
void spotrf_(const char* triangle, const int* n, float* a, const int* lda, int* info);
void sgetrf_(const int* m, const int* n, float* a, const int* lda, int* pivots, int* info);
void sgetrs_(const char* trans, const int* n, const int* columns, const float* a, const int* lda,
             const int* pivots, float* b, const int* ldb, int* info);
void dpotrf_(const char* triangle, const int* n, double* a, const int* lda, int* info);
void dgetrf_(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info);
void dgetrs_(const char* trans, const int* n, const int* columns, const double* a, const int* lda,
             const int* pivots, double* b, const int* ldb, int* info);
void cpotrf_(const char* triangle, const int* n, std::complex<float>* a, const int* lda, int* info);
void cgetrf_(const int* m, const int* n, std::complex<float>* a, const int* lda, int* pivots,
             int* info);
void cgetrs_(const char* trans, const int* n, const int* columns, const std::complex<float>* a,
             const int* lda, const int* pivots, std::complex<float>* b, const int* ldb, int* info);
void zpotrf_(const char* triangle, const int* n, std::complex<double>* a, const int* lda,
             int* info);
void zgetrf_(const int* m, const int* n, std::complex<double>* a, const int* lda, int* pivots,
             int* info);
void zgetrs_(const char* trans, const int* n, const int* columns, const std::complex<double>* a,
             const int* lda, const int* pivots, std::complex<double>* b, const int* ldb, int* info);
}

namespace penstock {

template <class T>
bool CholeskyFactor(int64_t size, T* a) {
  LimitOpenBlasToOneThread();
  // LAPACK reads the matrix in column-major order, so it sees the transposed matrix, whose upper
  // triangle is our lower triangle.
  const char triangle = 'U';
  const int n = LapackInt(size);
  int info;
  if constexpr (std::is_same_v<T, float>) {
    spotrf_(&triangle, &n, a, &n, &info);
  } else if constexpr (std::is_same_v<T, double>) {
    dpotrf_(&triangle, &n, a, &n, &info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cpotrf_(&triangle, &n, a, &n, &info);
  } else {
    zpotrf_(&triangle, &n, a, &n, &info);
  }
  return Succeeded(info);
}

template <class T>
void LuFactor(int64_t size, T* a, int* pivots) {
  LimitOpenBlasToOneThread();
  const int n = LapackInt(size);
  int info;
  if constexpr (std::is_same_v<T, float>) {
    sgetrf_(&n, &n, a, &n, pivots, &info);
  } else if constexpr (std::is_same_v<T, double>) {
    dgetrf_(&n, &n, a, &n, pivots, &info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cgetrf_(&n, &n, a, &n, pivots, &info);
  } else {
    zgetrf_(&n, &n, a, &n, pivots, &info);
  }
  Succeeded(info);  // ignores a singular matrix: the caller checks the diagonal
}

template <class T>
void LuSolve(int64_t size, int64_t right_sides, const T* lu, const int* pivots, T* b) {
  LimitOpenBlasToOneThread();
  const char trans = 'N';
  const int n = LapackInt(size), columns = LapackInt(right_sides);
  int info;
  if constexpr (std::is_same_v<T, float>) {
    sgetrs_(&trans, &n, &columns, lu, &n, pivots, b, &n, &info);
  } else if constexpr (std::is_same_v<T, double>) {
    dgetrs_(&trans, &n, &columns, lu, &n, pivots, b, &n, &info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cgetrs_(&trans, &n, &columns, lu, &n, pivots, b, &n, &info);
  } else {
    zgetrs_(&trans, &n, &columns, lu, &n, pivots, b, &n, &info);
  }
  CHECK(Succeeded(info));
}

template <class T>
void TriangularSolve(bool lower, bool adjoint, int64_t size, int64_t right_sides, const T* a,
                     T* b) {
  LimitOpenBlasToOneThread();
  const int n = LapackInt(size), columns = LapackInt(right_sides);
  const auto triangle = lower ? CblasLower : CblasUpper;
  const auto trans = adjoint ? CblasConjTrans : CblasNoTrans;
  [[maybe_unused]] const T one(1);
  if constexpr (std::is_same_v<T, float>) {
    cblas_strsm(CblasRowMajor, CblasLeft, triangle, trans, CblasNonUnit, n, columns, 1, a, n, b,
                columns);
  } else if constexpr (std::is_same_v<T, double>) {
    cblas_dtrsm(CblasRowMajor, CblasLeft, triangle, trans, CblasNonUnit, n, columns, 1, a, n, b,
                columns);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cblas_ctrsm(CblasRowMajor, CblasLeft, triangle, trans, CblasNonUnit, n, columns, &one, a, n, b,
                columns);
  } else {
    cblas_ztrsm(CblasRowMajor, CblasLeft, triangle, trans, CblasNonUnit, n, columns, &one, a, n, b,
                columns);
  }
}

template <class T>
void MatrixProduct(bool adjoint_a, bool adjoint_b, int64_t rows, int64_t cols, int64_t inner,
                   const T* a, const T* b, T* c) {
  LimitOpenBlasToOneThread();
  const int m = LapackInt(rows), n = LapackInt(cols), k = LapackInt(inner);
  const auto op_a = adjoint_a ? CblasConjTrans : CblasNoTrans;
  const auto op_b = adjoint_b ? CblasConjTrans : CblasNoTrans;
  const int lda = adjoint_a ? m : k, ldb = adjoint_b ? k : n;
  [[maybe_unused]] const T one(1), zero(0);
  if constexpr (std::is_same_v<T, float>) {
    cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, 1, a, lda, b, ldb, 0, c, n);
  } else if constexpr (std::is_same_v<T, double>) {
    cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, 1, a, lda, b, ldb, 0, c, n);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cblas_cgemm(CblasRowMajor, op_a, op_b, m, n, k, &one, a, lda, b, ldb, &zero, c, n);
  } else {
    cblas_zgemm(CblasRowMajor, op_a, op_b, m, n, k, &one, a, lda, b, ldb, &zero, c, n);
  }
}

#define INSTANTIATE(T)                                                          \
  template bool CholeskyFactor<T>(int64_t, T*);                                 \
  template void LuFactor<T>(int64_t, T*, int*);                                 \
  template void LuSolve<T>(int64_t, int64_t, const T*, const int*, T*);         \
  template void TriangularSolve<T>(bool, bool, int64_t, int64_t, const T*, T*); \
  template void MatrixProduct<T>(bool, bool, int64_t, int64_t, int64_t, const T*, const T*, T*)
INSTANTIATE(float);
INSTANTIATE(double);
INSTANTIATE(std::complex<float>);
INSTANTIATE(std::complex<double>);
#undef INSTANTIATE

}  // namespace penstock
