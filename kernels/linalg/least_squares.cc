// SPDX-License-Identifier: Apache-2.0
//
// MatrixSolveLs, also as BatchMatrixSolveLs: solves least squares problems; with fewer equations
// than unknowns, finds the solution of least norm.
#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// If `fast`, solves the normal equations, with the regularizer added to their diagonal. Otherwise
// uses a complete orthogonal decomposition, which works for matrices of any rank and ignores the
// regularizer.
template <class T>
class MatrixSolveLsKernel final : public MatrixKernel<T> {
 public:
  MatrixSolveLsKernel() : MatrixKernel<T>(2) {}
  Status Init(const KernelInit& node) override { return node.Attr("fast", &fast_); }

 protected:
  Status ReadScalar(const KernelContext& ctx, double* scalar) const override {
    const Tensor& l2 = ctx.input(2);
    if (l2.rank() != 0) {
      return InvalidArgument("l2_regularizer must be scalar, got shape ", l2.shape().ToString());
    }
    *scalar = l2.scalar<double>();
    if (*scalar >= 0) return OkStatus();
    return InvalidArgument("l2_regularizer must be >= 0, is ", *scalar);
  }
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    if (in[0].rows != in[1].rows) {
      return InvalidArgument("Input matrix and rhs are incompatible: ", in[0].rows, " and ",
                             in[1].rows, " rows");
    }
    *out = {{in[0].cols, in[1].cols}};
    if (std::max({in[0].rows, in[0].cols, in[1].cols}) > kMaxLapackDim) {
      return InvalidArgument("matrices with 2^31 or more rows or columns");
    }
    return OkStatus();
  }
  Status ComputeOne(const MatrixInputs<T>& in, double l2, MatrixOutputs<T>& out) const override {
    const auto &a = in[0], &b = in[1];
    auto& x = out[0];
    if (a.size() == 0 || b.size() == 0) {
      x.setZero();
      return OkStatus();
    }
    if (!fast_) return AnyRank(a, b, x);
    // Solves (a^H a) x = a^H b if there are at least as many equations as unknowns. Otherwise,
    // solves (a a^H) y = b, and returns x = a^H y.
    const bool over = a.rows() >= a.cols();
    const int64_t n = std::min(a.rows(), a.cols()), most = std::max(a.rows(), a.cols());
    RowMajor<T> gramian(n, n), y(n, b.cols());
    MatrixProduct(over, !over, n, n, most, a.data(), a.data(), gramian.data());
    gramian.diagonal().array() += T(static_cast<typename Eigen::NumTraits<T>::Real>(l2));
    if (!CholeskyFactor(n, gramian.data())) {
      return InvalidArgument(
          "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
          "larger l2_regularizer > 0.");
    }
    if (over) {
      MatrixProduct(true, false, n, b.cols(), most, a.data(), b.data(), y.data());
    } else {
      y = b;
    }
    TriangularSolve(true, false, n, b.cols(), gramian.data(), y.data());
    TriangularSolve(true, true, n, b.cols(), gramian.data(), y.data());
    if (over) {
      x = y;
    } else {
      MatrixProduct(true, false, most, b.cols(), n, a.data(), y.data(), x.data());
    }
    return OkStatus();
  }

 private:
  static Status AnyRank(const Eigen::Map<const RowMajor<T>>& a,
                        const Eigen::Map<const RowMajor<T>>& b, Eigen::Map<RowMajor<T>>& x) {
    using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    Columns matrix = a;
    Columns right = Columns::Zero(std::max(a.rows(), a.cols()), b.cols());
    right.topRows(b.rows()) = b;
    if (!matrix.allFinite() ||
        !LeastSquares(a.rows(), a.cols(), b.cols(), matrix.data(), right.data())) {
      return InvalidArgument("the matrix holds numbers that are not finite");
    }
    x = right.topRows(x.rows());
    return OkStatus();
  }

  bool fast_ = true;
};

Status LeastSquaresShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape a, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(MatrixShape b, MatrixShape::Of(s, 1));
  RETURN_IF_ERROR(s.WithRank(2, 0).status());
  if (a.rows >= 0 && b.rows >= 0 && a.rows != b.rows) {
    return InvalidArgument("Input matrix and rhs are incompatible: ", a.rows, " and ", b.rows,
                           " rows");
  }
  ASSIGN_OR_RETURN(b.batch, a.batch.Merge(b.batch));
  s.set_output(0, b.With({a.cols, b.cols}));
  return OkStatus();
}

// Returns the solution of a positive definite system, gramian x = b. `factor` is the Cholesky
// factor of the gramian.
Output SolveGramian(Output factor, Output b) {
  const auto solve = [factor](Output x, bool adjoint) {
    return Call("MatrixTriangularSolve", {factor, x}, {{"lower", true}, {"adjoint", adjoint}});
  };
  return solve(solve(b, false), true);
}

Output GramianFactor(const GradientScope& g, bool over) {
  const Output a = g.x(0);
  const Output gramian = Product(a, a, over, !over);
  return Call("Cholesky", {WithDiagonal(gramian, DiagonalOf(gramian) + Cast(g.x(2), a.dtype()))});
}

Gradients OverdeterminedGradient(const GradientScope& g) {
  const Output a = g.x(0), b = g.x(1), x = g.y();
  const Output z = SolveGramian(GramianFactor(g, true), g.dy());
  const Output xz = Product(x, z, false, true);
  return {Product(b, z, false, true) - Product(a, xz + Adjoint(xz)), Product(a, z), Gradient()};
}

Gradients UnderdeterminedGradient(const GradientScope& g) {
  const Output a = g.x(0), b = g.x(1), dy = g.dy();
  const Output factor = GramianFactor(g, false);
  const Output db = SolveGramian(factor, Product(a, dy)), w = SolveGramian(factor, b);
  const Output da =
      Product(w, dy - Product(a, db, true), false, true) - Product(db, Product(w, a, true));
  return {da, db, Gradient()};
}

Gradients LeastSquaresGradient(const GradientScope& g) {
  if (!g.attr<bool>("fast")) {
    g.sink().Fail(Unimplemented("the gradient of ", g.node_name(),
                                " (MatrixSolveLs) is defined for fast=true only"));
    return Gradients(3);
  }
  const PartialShape shape = g.x(0).shape();
  const int rank = shape.rank();
  if (rank < 2 || shape.dim(rank - 1) < 0 || shape.dim(rank - 2) < 0) {
    g.sink().Fail(Unimplemented("the gradient of ", g.node_name(),
                                " (MatrixSolveLs) needs the rows and columns of the matrix when "
                                "the graph is built; they are ",
                                shape.ToString()));
    return Gradients(3);
  }
  return shape.dim(rank - 2) >= shape.dim(rank - 1) ? OverdeterminedGradient(g)
                                                    : UnderdeterminedGradient(g);
}

OpDef LeastSquaresOp(const DTypes& types) {
  return {
      .doc =
          "Returns the x that minimizes |matrix * x - rhs|^2 + l2_regularizer * |x|^2; the "
          "x of least norm if the matrix has fewer rows than columns.",
      .inputs = {{"matrix", "T"}, {"rhs", "T"}, {"l2_regularizer", "double"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .attrs = {{"fast", AttrValue(true)}},
      .shape = LeastSquaresShape,
      .gradient = LeastSquaresGradient,
      // The examples' gradients are not checked, because the regularizer has none.
      .examples = {{.inputs = {{{{3, 2}}}, {{{3, 2}}}, {{{}, {0.1}}}}, .check_gradient = false},
                   {.inputs = {{{{2, 3}}}, {{{2, 1}}}, {{{}, {0}}}}, .check_gradient = false}},
  };
}

}  // namespace

OP(MatrixSolveLs) { return LeastSquaresOp(kMatrixTypes); }
OP(BatchMatrixSolveLs) { return LeastSquaresOp(kRealMatrixTypes); }
KERNEL(MatrixSolveLs, MatrixSolveLsKernel, MATRIX_TYPES);
KERNEL(BatchMatrixSolveLs, MatrixSolveLsKernel, REAL_MATRIX_TYPES);

}  // namespace penstock
