// SPDX-License-Identifier: Apache-2.0
#include "kernels/math/gemm.h"

#include <cblas.h>
#include <dnnl.h>

#include <algorithm>
#include <complex>
#include <type_traits>

#include "core/base/blocked_signals.h"
#include "core/base/check.h"
#include "kernels/math/gemv.h"

// A function of libgomp, which oneDNN uses: limits the OpenMP teams of the calling thread to one
// member.
extern "C" void omp_set_num_threads(int);

namespace penstock {
namespace {

CBLAS_TRANSPOSE Flag(Side side) {
  return side == Side::kPlain        ? CblasNoTrans
         : side == Side::kTransposed ? CblasTrans
                                     : CblasConjTrans;
}

// A block of rows and columns of c, which one thread computes. lda, ldb and ldc are the leading
// dimensions of the full matrices.
struct Block {
  Product p;  // sizes of the block
  int64_t lda, ldb, ldc;
};

// Returns whether the CPU has AVX-512. oneDNN uses it; OpenBLAS 0.3.21 and our own loops do not.
bool HasWideVectors() {
  static const bool wide = __builtin_cpu_supports("avx512f") != 0;
  return wide;
}

bool OneDnnIsFaster(const Product& p) {
  if (p.m * p.n * p.k <= 32 * 32 * 32) return false;  // the setup takes longer
  if (HasWideVectors() || p.a != Side::kPlain || p.b != Side::kPlain) return true;
  // With AVX2, OpenBLAS is faster (by 1.3) only for plain matrices of medium size.
  return p.m < 64 || p.n < 64 || p.n > 4096;
}

void MultiplyBlock(const Block& block, const float* a, const float* b, float* c) {
  const Product& p = block.p;
  if (!OneDnnIsFaster(p)) {
    cblas_sgemm(CblasRowMajor, Flag(p.a), Flag(p.b), p.m, p.n, p.k, 1, a, block.lda, b, block.ldb,
                0, c, block.ldc);
    return;
  }
  thread_local const bool alone = (omp_set_num_threads(1), true);
  static_cast<void>(alone);
  // oneDNN 2.6 uses the stack pointer for other purposes in its loops. If a signal handler ran
  // then, its stack frame would overwrite the packed matrices, or memory beyond them.
  const BlockedSignals blocked;
  const dnnl_status_t status =
      dnnl_sgemm(p.a == Side::kPlain ? 'N' : 'T', p.b == Side::kPlain ? 'N' : 'T', p.m, p.n, p.k, 1,
                 a, block.lda, b, block.ldb, 0, c, block.ldc);
  CHECK(status == dnnl_success, "dnnl_sgemm: ", static_cast<int>(status));
}

void MultiplyBlock(const Block& block, const double* a, const double* b, double* c) {
  const Product& p = block.p;
  cblas_dgemm(CblasRowMajor, Flag(p.a), Flag(p.b), p.m, p.n, p.k, 1, a, block.lda, b, block.ldb, 0,
              c, block.ldc);
}

void MultiplyBlock(const Block& block, const std::complex<float>* a, const std::complex<float>* b,
                   std::complex<float>* c) {
  const std::complex<float> one = 1, zero = 0;
  const Product& p = block.p;
  cblas_cgemm(CblasRowMajor, Flag(p.a), Flag(p.b), p.m, p.n, p.k, &one, a, block.lda, b, block.ldb,
              &zero, c, block.ldc);
}

void MultiplyBlock(const Block& block, const std::complex<double>* a, const std::complex<double>* b,
                   std::complex<double>* c) {
  const std::complex<double> one = 1, zero = 0;
  const Product& p = block.p;
  cblas_zgemm(CblasRowMajor, Flag(p.a), Flag(p.b), p.m, p.n, p.k, &one, a, block.lda, b, block.ldb,
              &zero, c, block.ldc);
}

// Computes a block of a product of integers by plain loops. Such products serve index arithmetic,
// so their speed matters little.
template <class T>
requires std::is_integral_v<T>
void MultiplyBlock(const Block& block, const T* a, const T* b, T* c) {
  using W = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  const Product& p = block.p;
  for (int64_t i = 0; i < p.m; ++i) {
    T* row = c + i * block.ldc;
    std::fill_n(row, p.n, T(0));
    for (int64_t l = 0; l < p.k; ++l) {
      const W x = static_cast<W>(p.a == Side::kPlain ? a[i * block.lda + l] : a[l * block.lda + i]);
      if (p.b == Side::kPlain) {
        const T* from = b + l * block.ldb;
        for (int64_t j = 0; j < p.n; ++j) row[j] = T(W(row[j]) + x * W(from[j]));
      } else {
        for (int64_t j = 0; j < p.n; ++j) row[j] = T(W(row[j]) + x * W(b[j * block.ldb + l]));
      }
    }
  }
}

// Approximate flops per nanosecond of one thread. These are high estimates, because to split a
// small product costs more than to compute a larger product on one thread.
template <class T>
constexpr double kFlopsPerNano = std::is_same_v<T, float> ? 100
                                 : std::is_integral_v<T>  ? 4
                                                          : 40;

constexpr int64_t kGrain = 16;  // rows and columns per step of the libraries' kernels

// A long product is computed in tiles of c that take about kTileNanos each; if the step is
// cancelled, the product stops after a tile. On tiles of at least kTileMin the libraries are as
// fast as on full matrices.
constexpr double kTileNanos = 50e6;
constexpr int64_t kTileMin = 512;

template <class T>
void MultiplyTiles(Scheduler& threads, const Product& p, const T* a, const T* b, T* c) {
  const auto nanos = [&p](int64_t rows, int64_t columns) {
    return 2.0 * static_cast<double>(rows) * columns * p.k / kFlopsPerNano<T>;
  };
  int64_t rows = p.m, columns = p.n;
  while (nanos(rows, columns) > kTileNanos && std::max(rows, columns) > kTileMin) {
    int64_t& longer = rows >= columns ? rows : columns;
    longer = ((longer + 1) / 2 + kGrain - 1) / kGrain * kGrain;
  }
  const int64_t tiles_down = (p.m + rows - 1) / rows, tiles_across = (p.n + columns - 1) / columns;
  const int64_t lda = p.a == Side::kPlain ? p.k : p.m, ldb = p.b == Side::kPlain ? p.n : p.k;
  const int64_t a_step = p.a == Side::kPlain ? lda : 1, b_step = p.b == Side::kPlain ? 1 : ldb;
  threads.ParallelFor(
      tiles_down * tiles_across, nanos(rows, columns), [&](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; ++tile) {
          const int64_t row = tile / tiles_across * rows;
          const int64_t column = tile % tiles_across * columns;
          Block block = {p, lda, ldb, p.n};
          block.p.m = std::min(rows, p.m - row);
          block.p.n = std::min(columns, p.n - column);
          MultiplyBlock(block, a + row * a_step, b + column * b_step, c + row * p.n + column);
        }
      });
}

// Splits the longer side of c over the threads; computes very long products in tiles instead. The
// library packs the operand of the shorter side again for each piece, so the smaller operand is the
// one that is packed several times.
template <class T>
void SplitAndMultiply(Scheduler& threads, const Product& p, const T* a, const T* b, T* c) {
  const bool by_rows = p.m >= p.n;
  const int64_t length = by_rows ? p.m : p.n;
  const int64_t grains = (length + kGrain - 1) / kGrain;
  const int64_t pieces = std::min<int64_t>(threads.num_threads(), grains);
  const int64_t lda = p.a == Side::kPlain ? p.k : p.m, ldb = p.b == Side::kPlain ? p.n : p.k;
  const double nanos = 2.0 * p.m * p.n * p.k / kFlopsPerNano<T>;
  if (nanos > pieces * kTileNanos) return MultiplyTiles(threads, p, a, b, c);
  threads.ParallelFor(pieces, nanos / pieces, [&](int64_t begin, int64_t end) {
    const int64_t first = grains * begin / pieces * kGrain;
    const int64_t last = std::min(length, grains * end / pieces * kGrain);
    Block block = {p, lda, ldb, p.n};
    (by_rows ? block.p.m : block.p.n) = last - first;
    const int64_t a_step = p.a == Side::kPlain ? lda : 1, b_step = p.b == Side::kPlain ? 1 : ldb;
    MultiplyBlock(block, a + (by_rows ? first * a_step : 0), b + (by_rows ? 0 : first * b_step),
                  c + first * (by_rows ? p.n : 1));
  });
}

}  // namespace

template <class T>
void Multiply(Scheduler& threads, const Product& p, const T* a, const T* b, T* c) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    std::fill_n(c, p.m * p.n, T(0));
    return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::is_same_v<T, float> || !HasWideVectors()) {
      // If one operand is a vector, each element of the matrix is used once, so packing the matrix
      // would take longer than the product.
      if (p.m == 1 && p.b == Side::kPlain) return SumOfRows(threads, p.k, p.n, b, a, c);
      if (p.m == 1) return DotProducts(threads, p.n, p.k, b, a, c);
      if (p.n == 1 && p.a == Side::kPlain) return DotProducts(threads, p.m, p.k, a, b, c);
      if (p.n == 1) return SumOfRows(threads, p.k, p.m, a, b, c);
    }
  }
  // OpenBLAS must not start threads: the kernels already run on the pool's threads.
  static const bool alone = (openblas_set_num_threads(1), true);
  static_cast<void>(alone);
  SplitAndMultiply(threads, p, a, b, c);
}

template void Multiply(Scheduler&, const Product&, const float*, const float*, float*);
template void Multiply(Scheduler&, const Product&, const double*, const double*, double*);
template void Multiply(Scheduler&, const Product&, const std::complex<float>*,
                       const std::complex<float>*, std::complex<float>*);
template void Multiply(Scheduler&, const Product&, const std::complex<double>*,
                       const std::complex<double>*, std::complex<double>*);
template void Multiply(Scheduler&, const Product&, const int16_t*, const int16_t*, int16_t*);
template void Multiply(Scheduler&, const Product&, const int32_t*, const int32_t*, int32_t*);
template void Multiply(Scheduler&, const Product&, const int64_t*, const int64_t*, int64_t*);

}  // namespace penstock
