// SPDX-License-Identifier: Apache-2.0
#include "kernels/linalg/eigenvalues.h"

#include <cblas.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/base/check.h"
#include "kernels/linalg/lapack.h"

extern "C" {

// The Fortran interface: all arguments are addresses, and int has 32 bits.
void sgeev_(const char* left, const char* right, const int* n, float* a, const int* lda,
            float* real, float* imaginary, float* vl, const int* ldvl, float* vr, const int* ldvr,
            float* work, const int* lwork, int* info);
void dgeev_(const char* left, const char* right, const int* n, double* a, const int* lda,
            double* real, double* imaginary, double* vl, const int* ldvl, double* vr,
            const int* ldvr, double* work, const int* lwork, int* info);
void cgeev_(const char* left, const char* right, const int* n, std::complex<float>* a,
            const int* lda, std::complex<float>* w, std::complex<float>* vl, const int* ldvl,
            std::complex<float>* vr, const int* ldvr, std::complex<float>* work, const int* lwork,
            float* rwork, int* info);
void zgeev_(const char* left, const char* right, const int* n, std::complex<double>* a,
            const int* lda, std::complex<double>* w, std::complex<double>* vl, const int* ldvl,
            std::complex<double>* vr, const int* ldvr, std::complex<double>* work, const int* lwork,
            double* rwork, int* info);
}

namespace penstock {
namespace {

template <class R>
void Geev(const char* job, int n, R* a, R* real, R* imaginary, R* vr, R* work, int lwork,
          int* info) {
  const char none = 'N';
  const int one = 1;
  if constexpr (std::is_same_v<R, float>) {
    sgeev_(&none, job, &n, a, &n, real, imaginary, nullptr, &one, vr, &n, work, &lwork, info);
  } else {
    dgeev_(&none, job, &n, a, &n, real, imaginary, nullptr, &one, vr, &n, work, &lwork, info);
  }
}

template <class R>
void Geev(const char* job, int n, std::complex<R>* a, std::complex<R>* values, std::complex<R>* vr,
          std::complex<R>* work, int lwork, R* rwork, int* info) {
  const char none = 'N';
  const int one = 1;
  if constexpr (std::is_same_v<R, float>) {
    cgeev_(&none, job, &n, a, &n, values, nullptr, &one, vr, &n, work, &lwork, rwork, info);
  } else {
    zgeev_(&none, job, &n, a, &n, values, nullptr, &one, vr, &n, work, &lwork, rwork, info);
  }
}

// Calls run(work, lwork) first to get the size of the work space, then with a work space of that
// size.
template <class T, class Run>
void WithWork(Run run) {
  std::vector<T> work(1);
  run(work.data(), -1);
  work.resize(std::max<size_t>(1, static_cast<size_t>(std::real(work[0]))));
  run(work.data(), static_cast<int>(work.size()));
}

// Converts the eigenvectors of a real matrix to complex numbers. LAPACK returns the two vectors of
// a conjugate pair as a column of real and a column of imaginary parts.
template <class R>
void Unpack(int64_t n, const std::vector<R>& imaginary, const std::vector<R>& columns,
            std::complex<R>* vectors) {
  for (int64_t j = 0; j < n; ++j) {
    const bool pair = imaginary[j] != 0;
    for (int64_t i = 0; i < n; ++i) {
      const R real = columns[j * n + i];
      if (!pair) {
        vectors[j * n + i] = real;
        continue;
      }
      vectors[j * n + i] = {real, columns[(j + 1) * n + i]};
      vectors[(j + 1) * n + i] = std::conj(vectors[j * n + i]);
    }
    j += pair;
  }
}

}  // namespace

template <class T, class C>
bool Eigenvalues(int64_t size, T* a, C* values, C* vectors) {
  openblas_set_num_threads(1);  // the kernels already run on the runtime's threads
  CHECK(size >= 1 && size <= kMaxLapackDim);
  const int n = static_cast<int>(size);
  const char job = vectors != nullptr ? 'V' : 'N';
  int info;
  if constexpr (std::is_same_v<T, C>) {
    std::vector<typename C::value_type> rwork(2 * size);
    WithWork<T>([&](T* work, int lwork) {
      Geev(&job, n, a, values, vectors, work, lwork, rwork.data(), &info);
    });
  } else {
    std::vector<T> real(size), imaginary(size), columns(vectors != nullptr ? size * size : 0);
    WithWork<T>([&](T* work, int lwork) {
      Geev(&job, n, a, real.data(), imaginary.data(), columns.data(), work, lwork, &info);
    });
    for (int64_t i = 0; i < size; ++i) values[i] = C(real[i], imaginary[i]);
    if (vectors != nullptr && info == 0) Unpack(size, imaginary, columns, vectors);
  }
  CHECK(info >= 0, "LAPACK: argument ", -info, " is wrong");
  return info == 0;
}

template bool Eigenvalues(int64_t, float*, std::complex<float>*, std::complex<float>*);
template bool Eigenvalues(int64_t, double*, std::complex<double>*, std::complex<double>*);
template bool Eigenvalues(int64_t, std::complex<float>*, std::complex<float>*,
                          std::complex<float>*);
template bool Eigenvalues(int64_t, std::complex<double>*, std::complex<double>*,
                          std::complex<double>*);

}  // namespace penstock
