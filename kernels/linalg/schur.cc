// SPDX-License-Identifier: Apache-2.0
#include "kernels/linalg/schur.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/check.h"
#include "kernels/linalg/lapack.h"

extern "C" {
void zgees_(const char* vectors, const char* sort, int (*select)(const std::complex<double>*),
            const int* n, std::complex<double>* a, const int* lda, int* sdim,
            std::complex<double>* w, std::complex<double>* vs, const int* ldvs,
            std::complex<double>* work, const int* lwork, double* rwork, int* bwork, int* info);
}

namespace penstock {
namespace {

using Complex = std::complex<double>;
using Matrix = ComplexMatrix;

Matrix Times(const Matrix& a, const Matrix& b, bool adjoint_b = false) {
  Matrix c(a.rows(), b.cols());
  MatrixProduct(false, adjoint_b, a.rows(), b.cols(), a.cols(), a.data(), b.data(), c.data());
  return c;
}

double Norm(const Matrix& a) { return a.cwiseAbs().colwise().sum().maxCoeff(); }

// The Schur form a = q t q^H, where t is upper triangular. t and q are not finite if LAPACK did not
// converge.
struct Schur {
  Matrix t, q;

  explicit Schur(const Matrix& a) : t(a.transpose()), q(a.rows(), a.cols()) {
    const int n = static_cast<int>(a.rows());
    const char vectors = 'V', sort = 'N';
    std::vector<Complex> values(n), work(2 * static_cast<size_t>(n));
    std::vector<double> rwork(n);
    const int lwork = static_cast<int>(work.size());
    int sdim, info;
    // LAPACK is column-major, so it reads and returns the transposed matrices.
    zgees_(&vectors, &sort, nullptr, &n, t.data(), &n, &sdim, values.data(), q.data(), &n,
           work.data(), &lwork, rwork.data(), nullptr, &info);
    CHECK(info >= 0, "LAPACK: argument ", -info, " is wrong");
    t.transposeInPlace();
    q.transposeInPlace();
    if (info > 0) t.setConstant(std::numeric_limits<double>::quiet_NaN());
  }
  Matrix FromSchurBasis(const Matrix& f) const { return Times(Times(q, f), q, /*adjoint_b=*/true); }
};

// Returns the root r of an upper triangle t, computed column by column: each equation of r r = t is
// solved for its last unknown.
Matrix RootOfTriangle(const Matrix& t) {
  const Eigen::Index n = t.rows();
  Matrix r = Matrix::Zero(n, n);
  for (Eigen::Index j = 0; j < n; ++j) {
    r(j, j) = std::sqrt(t(j, j));
    for (Eigen::Index i = j - 1; i >= 0; --i) {
      Complex rest = t(i, j);
      for (Eigen::Index k = i + 1; k < j; ++k) rest -= r(i, k) * r(k, j);
      // If both roots are zero, the element above them must be zero too.
      if (rest != 0.0) r(i, j) = rest / (r(i, i) + r(j, j));
    }
  }
  return r;
}

// Returns log(1 + x) of an upper triangle x, as the integral of x / (1 + s x) over s from 0 to 1,
// by Gauss's rule of seven points: exact to double precision if the norm of x is below a quarter.
Matrix LogarithmNearOne(const Matrix& x) {
  constexpr double kNodes[] = {0.0, 0.405845151377397166906606412076961,
                               0.741531185599394439863864773280788,
                               0.949107912342758524526189684047851};
  constexpr double kWeights[] = {
      0.417959183673469387755102040816327, 0.381830050505118944950369775488975,
      0.279705391489276667901467771423780, 0.129484966168869693270611432679082};
  const Eigen::Index n = x.rows();
  Matrix sum = Matrix::Zero(n, n);
  for (int i = -3; i <= 3; ++i) {
    const double at = (1 + (i < 0 ? -1 : 1) * kNodes[std::abs(i)]) / 2;
    const Matrix triangle = Matrix::Identity(n, n) + at * x;
    Matrix term = x;
    TriangularSolve(false, false, n, n, triangle.data(), term.data());
    sum += kWeights[std::abs(i)] / 2 * term;
  }
  return sum;
}

// Replaces b by a^-1 b.
void SolveInPlace(const Matrix& a, Matrix* b) {
  const int64_t n = a.rows();
  Matrix lu = a.transpose(), right = b->transpose();  // column-major
  std::vector<int> pivots(n);
  LuFactor(n, lu.data(), pivots.data());
  LuSolve(n, n, lu.data(), pivots.data(), right.data());
  *b = right.transpose();
}

}  // namespace

Matrix SquareRootOf(const Matrix& a) {
  const Schur schur(a);
  return schur.FromSchurBasis(RootOfTriangle(schur.t));
}

Matrix LogarithmOf(const Matrix& a) {
  const Schur schur(a);
  const Matrix one = Matrix::Identity(a.rows(), a.cols());
  Matrix t = schur.t;
  double scale = 1;
  // Each square root halves the logarithm, so a few roots are enough. A matrix with a zero on the
  // diagonal has no logarithm, and its roots never come close to the identity matrix.
  constexpr int kRootsMax = 64;
  int roots = 0;
  for (; roots < kRootsMax && Norm(t - one) > 0.25; ++roots, scale *= 2) t = RootOfTriangle(t);
  if (!(Norm(t - one) <= 0.25)) {
    return Matrix::Constant(a.rows(), a.cols(), std::numeric_limits<double>::quiet_NaN());
  }
  return schur.FromSchurBasis(scale * LogarithmNearOne(t - one));
}

// Computes the exponential of a / 2^k by a quotient of polynomials of degree 13 (exact to double
// precision if the norm is below 5.37), and squares it k times.
Matrix ExponentialOf(const Matrix& a) {
  constexpr double kNormMax = 5.37;
  constexpr double kB[] = {64764752532480000.,
                           32382376266240000.,
                           7771770303897600.,
                           1187353796428800.,
                           129060195264000.,
                           10559470521600.,
                           670442572800.,
                           33522128640.,
                           1323241920.,
                           40840800.,
                           960960.,
                           16380.,
                           182.,
                           1.};
  const double norm = Norm(a);
  const int squarings = norm > kNormMax ? std::ilogb(norm / kNormMax) + 1 : 0;
  const Matrix x = a * std::ldexp(1.0, -squarings), one = Matrix::Identity(a.rows(), a.cols());
  const Matrix x2 = Times(x, x), x4 = Times(x2, x2), x6 = Times(x2, x4);
  const Matrix odd = Times(x, Times(x6, kB[13] * x6 + kB[11] * x4 + kB[9] * x2) + kB[7] * x6 +
                                  kB[5] * x4 + kB[3] * x2 + kB[1] * one);
  const Matrix even = Times(x6, kB[12] * x6 + kB[10] * x4 + kB[8] * x2) + kB[6] * x6 + kB[4] * x4 +
                      kB[2] * x2 + kB[0] * one;
  Matrix y = even + odd;
  SolveInPlace(even - odd, &y);
  for (int i = 0; i < squarings; ++i) y = Times(y, y);
  return y;
}

}  // namespace penstock
