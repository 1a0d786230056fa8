// SPDX-License-Identifier: Apache-2.0
//
// Cholesky and CholeskyGrad, also under their old names BatchCholesky and BatchCholeskyGrad.
#include <limits>

#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// Writes NaN to the lower triangle if the matrix is not positive definite.
template <class T>
class CholeskyKernel final : public MatrixKernel<T> {
 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[0].rows, in[0].cols}};
    return CheckSquare(in[0]);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) return OkStatus();
    const int64_t n = in[0].rows();
    out[0] = in[0];
    const bool definite = CholeskyFactor(n, out[0].data());
    const T nan(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (j > i) {
          out[0](i, j) = T(0);
        } else if (!definite) {
          out[0](i, j) = nan;
        }
      }
    }
    return OkStatus();
  }
};

// The gradient is L^-H P L^-1, made symmetric, where P is the lower half of L^H dL.
template <class T>
class CholeskyGradKernel final : public MatrixKernel<T> {
 public:
  CholeskyGradKernel() : MatrixKernel<T>(2) {}

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[0].rows, in[0].cols}};
    RETURN_IF_ERROR(CheckSquare(in[0]));
    if (in[1].rows == in[0].rows && in[1].cols == in[0].cols) return OkStatus();
    return InvalidArgument("Inputs l and grad must have the same shape");
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) return OkStatus();
    const int64_t n = in[0].rows();
    RowMajor<T> l = in[0], dl = in[1], p(n, n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) l(i, j) = dl(i, j) = T(0);
    }
    MatrixProduct(true, false, n, n, n, l.data(), dl.data(), p.data());
    for (int64_t i = 0; i < n; ++i) {
      p(i, i) *= T(0.5);
      for (int64_t j = i + 1; j < n; ++j) p(i, j) = T(0);
    }
    TriangularSolve(true, true, n, n, l.data(), p.data());  // L^-H P
    RowMajor<T> both = p.transpose();
    TriangularSolve(true, true, n, n, l.data(), both.data());  // (L^-H P L^-1)^T
    out[0] = (both + both.transpose()) * T(0.5);
    return OkStatus();
  }
};

Output Solve(Output l, Output x) {
  return Call("MatrixTriangularSolve", {l, x}, {{"lower", true}, {"adjoint", true}});
}

Gradients CholeskyGradient(const GradientScope& g) {
  const Output l = g.y();
  const Output left = Solve(l, LowerHalf(Product(l, g.dy(), true)));
  const Output both = Solve(l, Adjoint(left));
  return {(both + Adjoint(both)) * Cast(g.Const(0.5), g.dtype())};
}

OpDef CholeskyOp(const DTypes& types) {
  return {
      .doc =
          "Returns, for each positive definite matrix, the lower triangular matrix L with L "
          "* L^H = input. Reads only the lower triangle of the input.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .shape = SquareShape,
      .gradient = CholeskyGradient,
      // The example's gradient is not checked: the op reads only the lower triangle, but its
      // gradient assumes symmetric matrices.
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 1, 3, 2, 0.5, 0.5, 1}}}},
                    .check_gradient = false}},
  };
}

OpDef CholeskyGradOp(const DTypes& types) {
  return {
      .doc =
          "Returns the gradient of Cholesky for its input, computed from its output `l` and "
          "the gradient of that output.",
      .inputs = {{"l", "T"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .shape = SquareShape,
      .examples = {{.inputs = {{{{2, 2}, {2, 0, 1, 3}}}, {{{2, 2}}}}}},
  };
}

}  // namespace

OP(Cholesky) { return CholeskyOp(kMatrixTypes); }
OP(BatchCholesky) { return CholeskyOp(kRealMatrixTypes); }
OP(CholeskyGrad) { return CholeskyGradOp(kRealMatrixTypes); }
OP(BatchCholeskyGrad) { return CholeskyGradOp(kRealMatrixTypes); }
KERNEL(Cholesky, CholeskyKernel, MATRIX_TYPES);
KERNEL(BatchCholesky, CholeskyKernel, REAL_MATRIX_TYPES);
KERNEL(CholeskyGrad, CholeskyGradKernel, REAL_MATRIX_TYPES);
KERNEL(BatchCholeskyGrad, CholeskyGradKernel, REAL_MATRIX_TYPES);

}  // namespace penstock
