// SPDX-License-Identifier: Apache-2.0
//
// Functions of one square matrix, by way of its Schur form; all in double precision. Thread-safe.
#pragma once

#include <Eigen/Core>
#include <complex>

namespace penstock {

using ComplexMatrix =
    Eigen::Matrix<std::complex<double>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// REQUIRES finite numbers in 1 to kMaxLapackDim rows. Not finite where there is none, or where
// LAPACK did not converge.
ComplexMatrix SquareRootOf(const ComplexMatrix& a);  // of the two roots that to the right of 0
ComplexMatrix LogarithmOf(const ComplexMatrix& a);   // imaginary parts within pi
ComplexMatrix ExponentialOf(const ComplexMatrix& a);

}  // namespace penstock
