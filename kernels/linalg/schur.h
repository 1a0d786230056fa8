// SPDX-License-Identifier: Apache-2.0
//
// Functions of one square matrix, computed from its Schur form in double precision. Thread-safe.
#pragma once

#include <Eigen/Core>
#include <complex>

namespace penstock {

using ComplexMatrix =
    Eigen::Matrix<std::complex<double>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Return functions of a matrix. REQUIRES: finite numbers, and from 1 to kMaxLapackDim rows. The
// result is not finite if the function is not defined for `a`, or if LAPACK did not converge.
ComplexMatrix SquareRootOf(const ComplexMatrix& a);  // the root with eigenvalues of real part >= 0
ComplexMatrix LogarithmOf(const ComplexMatrix& a);   // imaginary parts of eigenvalues in [-pi, pi]
ComplexMatrix ExponentialOf(const ComplexMatrix& a);

}  // namespace penstock
