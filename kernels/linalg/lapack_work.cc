// SPDX-License-Identifier: Apache-2.0
//
// The LAPACK routines that need work space. A query returns the size of the work space.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/linalg/lapack_call.h"

extern "C" {

// The Fortran interface: all arguments are addresses, and int has 32 bits.
void sgesdd_(const char* job, const int* m, const int* n, float* a, const int* lda, float* s,
             float* u, const int* ldu, float* vt, const int* ldvt, float* work, const int* lwork,
             int* iwork, int* info);
void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s,
             double* u, const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork,
             int* iwork, int* info);
void cgesdd_(const char* job, const int* m, const int* n, std::complex<float>* a, const int* lda,
             float* s, std::complex<float>* u, const int* ldu, std::complex<float>* vt,
             const int* ldvt, std::complex<float>* work, const int* lwork, float* rwork, int* iwork,
             int* info);
void zgesdd_(const char* job, const int* m, const int* n, std::complex<double>* a, const int* lda,
             double* s, std::complex<double>* u, const int* ldu, std::complex<double>* vt,
             const int* ldvt, std::complex<double>* work, const int* lwork, double* rwork,
             int* iwork, int* info);

void ssyevd_(const char* job, const char* triangle, const int* n, float* a, const int* lda,
             float* w, float* work, const int* lwork, int* iwork, const int* liwork, int* info);
void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* lda,
             double* w, double* work, const int* lwork, int* iwork, const int* liwork, int* info);
void cheevd_(const char* job, const char* triangle, const int* n, std::complex<float>* a,
             const int* lda, float* w, std::complex<float>* work, const int* lwork, float* rwork,
             const int* lrwork, int* iwork, const int* liwork, int* info);
void zheevd_(const char* job, const char* triangle, const int* n, std::complex<double>* a,
             const int* lda, double* w, std::complex<double>* work, const int* lwork, double* rwork,
             const int* lrwork, int* iwork, const int* liwork, int* info);

void sgelsy_(const int* m, const int* n, const int* nrhs, float* a, const int* lda, float* b,
             const int* ldb, int* pivots, const float* rcond, int* rank, float* work,
             const int* lwork, int* info);
void dgelsy_(const int* m, const int* n, const int* nrhs, double* a, const int* lda, double* b,
             const int* ldb, int* pivots, const double* rcond, int* rank, double* work,
             const int* lwork, int* info);
void cgelsy_(const int* m, const int* n, const int* nrhs, std::complex<float>* a, const int* lda,
             std::complex<float>* b, const int* ldb, int* pivots, const float* rcond, int* rank,
             std::complex<float>* work, const int* lwork, float* rwork, int* info);
void zgelsy_(const int* m, const int* n, const int* nrhs, std::complex<double>* a, const int* lda,
             std::complex<double>* b, const int* ldb, int* pivots, const double* rcond, int* rank,
             std::complex<double>* work, const int* lwork, double* rwork, int* info);

void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work,
             const int* lwork, int* info);
void sorgqr_(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau,
             float* work, const int* lwork, int* info);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work,
             const int* lwork, int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau,
             double* work, const int* lwork, int* info);
void cgeqrf_(const int* m, const int* n, std::complex<float>* a, const int* lda,
             std::complex<float>* tau, std::complex<float>* work, const int* lwork, int* info);
void cungqr_(const int* m, const int* n, const int* k, std::complex<float>* a, const int* lda,
             const std::complex<float>* tau, std::complex<float>* work, const int* lwork,
             int* info);
void zgeqrf_(const int* m, const int* n, std::complex<double>* a, const int* lda,
             std::complex<double>* tau, std::complex<double>* work, const int* lwork, int* info);
void zungqr_(const int* m, const int* n, const int* k, std::complex<double>* a, const int* lda,
             const std::complex<double>* tau, std::complex<double>* work, const int* lwork,
             int* info);
}

namespace penstock {
namespace {

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

// Returns the size of work space that a routine has written to work[0], in a query with lwork = -1.
template <class T>
int WorkSize(T asked) {
  return std::max(1, static_cast<int>(std::real(asked)));
}

// The three kinds of work space, for a query (sizes -1) or for the call.
template <class T>
struct Work {
  std::vector<T> main = std::vector<T>(1);
  std::vector<Real<T>> real = std::vector<Real<T>>(1);
  std::vector<int> ints = std::vector<int>(1);
};

template <class T>
void Gesdd(const char* job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt,
           Work<T>& work, int lwork, int* info) {
  if constexpr (std::is_same_v<T, float>) {
    sgesdd_(job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work.main.data(), &lwork, work.ints.data(),
            info);
  } else if constexpr (std::is_same_v<T, double>) {
    dgesdd_(job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work.main.data(), &lwork, work.ints.data(),
            info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cgesdd_(job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work.main.data(), &lwork, work.real.data(),
            work.ints.data(), info);
  } else {
    zgesdd_(job, &m, &n, a, &m, s, u, &ldu, vt, &ldvt, work.main.data(), &lwork, work.real.data(),
            work.ints.data(), info);
  }
}

template <class T>
void Evd(const char* job, const char* triangle, int n, T* a, Real<T>* w, Work<T>& work, int lwork,
         int lrwork, int liwork, int* info) {
  if constexpr (std::is_same_v<T, float>) {
    ssyevd_(job, triangle, &n, a, &n, w, work.main.data(), &lwork, work.ints.data(), &liwork, info);
  } else if constexpr (std::is_same_v<T, double>) {
    dsyevd_(job, triangle, &n, a, &n, w, work.main.data(), &lwork, work.ints.data(), &liwork, info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cheevd_(job, triangle, &n, a, &n, w, work.main.data(), &lwork, work.real.data(), &lrwork,
            work.ints.data(), &liwork, info);
  } else {
    zheevd_(job, triangle, &n, a, &n, w, work.main.data(), &lwork, work.real.data(), &lrwork,
            work.ints.data(), &liwork, info);
  }
}

template <class T>
void Gelsy(int m, int n, int columns, T* a, T* b, int* pivots, Work<T>& work, int lwork,
           int* info) {
  const int ldb = std::max(m, n);
  const Real<T> rcond = std::numeric_limits<Real<T>>::epsilon() * std::min(m, n);
  int rank;
  if constexpr (std::is_same_v<T, float>) {
    sgelsy_(&m, &n, &columns, a, &m, b, &ldb, pivots, &rcond, &rank, work.main.data(), &lwork,
            info);
  } else if constexpr (std::is_same_v<T, double>) {
    dgelsy_(&m, &n, &columns, a, &m, b, &ldb, pivots, &rcond, &rank, work.main.data(), &lwork,
            info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cgelsy_(&m, &n, &columns, a, &m, b, &ldb, pivots, &rcond, &rank, work.main.data(), &lwork,
            work.real.data(), info);
  } else {
    zgelsy_(&m, &n, &columns, a, &m, b, &ldb, pivots, &rcond, &rank, work.main.data(), &lwork,
            work.real.data(), info);
  }
}

template <class T>
void Geqrf(int m, int n, T* a, T* tau, std::vector<T>& work, int lwork, int* info) {
  if constexpr (std::is_same_v<T, float>) {
    sgeqrf_(&m, &n, a, &m, tau, work.data(), &lwork, info);
  } else if constexpr (std::is_same_v<T, double>) {
    dgeqrf_(&m, &n, a, &m, tau, work.data(), &lwork, info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cgeqrf_(&m, &n, a, &m, tau, work.data(), &lwork, info);
  } else {
    zgeqrf_(&m, &n, a, &m, tau, work.data(), &lwork, info);
  }
}

template <class T>
void Orgqr(int m, int n, int k, T* q, const T* tau, std::vector<T>& work, int lwork, int* info) {
  if constexpr (std::is_same_v<T, float>) {
    sorgqr_(&m, &n, &k, q, &m, tau, work.data(), &lwork, info);
  } else if constexpr (std::is_same_v<T, double>) {
    dorgqr_(&m, &n, &k, q, &m, tau, work.data(), &lwork, info);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cungqr_(&m, &n, &k, q, &m, tau, work.data(), &lwork, info);
  } else {
    zungqr_(&m, &n, &k, q, &m, tau, work.data(), &lwork, info);
  }
}

}  // namespace

template <class T, class R>
bool SingularValues(char job, int64_t rows, int64_t cols, T* a, R* s, T* u, T* vh) {
  LimitOpenBlasToOneThread();
  const int m = LapackInt(rows), n = LapackInt(cols), least = std::min(m, n), most = std::max(m, n);
  const int ldu = m, ldvt = job == 'A' ? n : job == 'S' ? least : 1;
  Work<T> work;
  work.ints.resize(8 * static_cast<size_t>(least));
  const size_t k = least, l = most;
  if (kIsComplex<T>)
    work.real.resize(std::max<size_t>(5 * k * k + 5 * k, 2 * l * k + 2 * k * k + k));
  int info;
  Gesdd<T>(&job, m, n, a, s, u, ldu, vh, ldvt, work, -1, &info);
  work.main.resize(WorkSize(work.main[0]));
  Gesdd<T>(&job, m, n, a, s, u, ldu, vh, ldvt, work, static_cast<int>(work.main.size()), &info);
  return Succeeded(info);
}

template <class T, class R>
bool SelfAdjointEigenvalues(char triangle, bool vectors, int64_t size, T* a, R* values) {
  LimitOpenBlasToOneThread();
  const int n = LapackInt(size);
  const char job = vectors ? 'V' : 'N';
  Work<T> work;
  int info;
  Evd<T>(&job, &triangle, n, a, values, work, -1, -1, -1, &info);
  work.main.resize(WorkSize(work.main[0]));
  work.real.resize(WorkSize(work.real[0]));
  work.ints.resize(std::max(1, work.ints[0]));
  Evd<T>(&job, &triangle, n, a, values, work, static_cast<int>(work.main.size()),
         static_cast<int>(work.real.size()), static_cast<int>(work.ints.size()), &info);
  return Succeeded(info);
}

template <class T>
bool LeastSquares(int64_t rows, int64_t cols, int64_t columns, T* a, T* b) {
  LimitOpenBlasToOneThread();
  const int m = LapackInt(rows), n = LapackInt(cols), k = LapackInt(columns);
  std::vector<int> pivots(n);
  Work<T> work;
  work.real.resize(2 * static_cast<size_t>(n));
  int info;
  Gelsy<T>(m, n, k, a, b, pivots.data(), work, -1, &info);
  work.main.resize(WorkSize(work.main[0]));
  Gelsy<T>(m, n, k, a, b, pivots.data(), work, static_cast<int>(work.main.size()), &info);
  return Succeeded(info);
}

template <class T>
void QrFactors(int64_t rows, int64_t cols, T* a, int64_t q_cols, T* q) {
  LimitOpenBlasToOneThread();
  const int m = LapackInt(rows), n = LapackInt(cols), k = std::min(m, n),
            columns = LapackInt(q_cols);
  std::vector<T> tau(k), work(1);
  int info;
  Geqrf<T>(m, n, a, tau.data(), work, -1, &info);
  work.resize(WorkSize(work[0]));
  Geqrf<T>(m, n, a, tau.data(), work, static_cast<int>(work.size()), &info);
  CHECK(Succeeded(info));
  std::copy_n(a, static_cast<size_t>(m) * k, q);
  Orgqr<T>(m, columns, k, q, tau.data(), work, -1, &info);
  work.resize(WorkSize(work[0]));
  Orgqr<T>(m, columns, k, q, tau.data(), work, static_cast<int>(work.size()), &info);
  CHECK(Succeeded(info));
}

#define INSTANTIATE(T, R)                                                     \
  template bool SingularValues<T, R>(char, int64_t, int64_t, T*, R*, T*, T*); \
  template bool SelfAdjointEigenvalues<T, R>(char, bool, int64_t, T*, R*);    \
  template bool LeastSquares<T>(int64_t, int64_t, int64_t, T*, T*);           \
  template void QrFactors<T>(int64_t, int64_t, T*, int64_t, T*)
INSTANTIATE(float, float);
INSTANTIATE(double, double);
INSTANTIATE(std::complex<float>, float);
INSTANTIATE(std::complex<double>, double);
#undef INSTANTIATE

}  // namespace penstock
