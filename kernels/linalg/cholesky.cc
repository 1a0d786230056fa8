// SPDX-License-Identifier: Apache-2.0
//
// Cholesky and CholeskyGrad, also under their old names BatchCholesky and BatchCholeskyGrad.
#include <Eigen/Cholesky>
#include <limits>

#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// NaN in the lower triangle where the matrix is not positive definite.
template <class T>
class CholeskyKernel final : public MatrixKernel<T> {
 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[0].rows, in[0].cols}};
    return CheckSquare(in[0]);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    out[0].setZero();
    if (in[0].size() == 0) return OkStatus();
    const Eigen::LLT<RowMajor<T>> llt(in[0]);
    if (llt.info() == Eigen::Success) {
      out[0] = llt.matrixL();
    } else {
      out[0].template triangularView<Eigen::Lower>().setConstant(
          std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN());
    }
    return OkStatus();
  }
};

// L^-H P L^-1, made symmetric, where P is the lower half of L^H dL.
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
    const RowMajor<T> l = in[0].template triangularView<Eigen::Lower>();
    const RowMajor<T> dl = in[1].template triangularView<Eigen::Lower>();
    RowMajor<T> p = (l.adjoint() * dl).template triangularView<Eigen::Lower>();
    p.diagonal() *= T(0.5);
    const auto solver = l.adjoint().template triangularView<Eigen::Upper>();
    const RowMajor<T> left = solver.solve(p);                            // L^-H P
    const RowMajor<T> both = solver.solve(RowMajor<T>(left.adjoint()));  // (L^-H P L^-1)^H
    out[0] = (both + both.adjoint()) * T(0.5);
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
          "The lower triangular matrix L with L L^H = input, for each positive definite matrix; "
          "only its lower triangle is read.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .shape = SquareShape,
      .gradient = CholeskyGradient,
      // Only the lower triangle is read, while the gradient is that for symmetric matrices.
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 1, 3, 2, 0.5, 0.5, 1}}}},
                    .check_gradient = false}},
  };
}

OpDef CholeskyGradOp(const DTypes& types) {
  return {
      .doc = "The gradient of Cholesky for its input, from its output l and the gradient of that.",
      .inputs = {{"l", "T"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .shape = SquareShape,
      .examples = {{.inputs = {{{{2, 2}, {2, 0, 1, 3}}}, {{{2, 2}}}}}},
  };
}

}  // namespace

OP(Cholesky, (CholeskyOp(kMatrixTypes)));
OP(BatchCholesky, (CholeskyOp(kRealMatrixTypes)));
OP(CholeskyGrad, (CholeskyGradOp(kRealMatrixTypes)));
OP(BatchCholeskyGrad, (CholeskyGradOp(kRealMatrixTypes)));
KERNEL(Cholesky, CholeskyKernel, MATRIX_TYPES);
KERNEL(BatchCholesky, CholeskyKernel, REAL_MATRIX_TYPES);
KERNEL(CholeskyGrad, CholeskyGradKernel, REAL_MATRIX_TYPES);
KERNEL(BatchCholeskyGrad, CholeskyGradKernel, REAL_MATRIX_TYPES);

}  // namespace penstock
