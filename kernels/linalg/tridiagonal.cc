// SPDX-License-Identifier: Apache-2.0
//
// TridiagonalSolve, TridiagonalMatMul: solve systems with, and multiply by, tridiagonal matrices. A
// matrix is given by three rows: the diagonal above the main diagonal, the main diagonal, and the
// one below. Element i of each belongs to row i of the matrix. The last element of the first row
// and the first element of the third are not read.
#include <limits>

#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

template <class T>
using RowVector = Eigen::Array<T, 1, Eigen::Dynamic>;

// Gaussian elimination from the top. With `pivoting`, exchanges two neighbouring rows if the lower
// one has the greater pivot. `perturbation` replaces pivots that are zero; if `perturbation` is
// zero, a system with a zero pivot has no solution.
template <class T>
class Elimination {
 public:
  Elimination(const Eigen::Map<const RowMajor<T>>& diagonals, bool pivoting, T perturbation)
      : pivoting_(pivoting), perturbation_(perturbation), n_(diagonals.cols()) {
    u_.resize(3, n_);
    u_.row(0) = diagonals.row(1);
    u_.row(1) = diagonals.row(0);
    u_.row(2).setZero();
    subdiagonal_ = diagonals.row(2);
    u_(1, n_ - 1) = T(0);
  }

  // Replaces the right sides x by the solutions. Returns false if there is no solution.
  bool Solve(Eigen::Map<RowMajor<T>>& x) {
    for (int64_t i = 0; i < n_; ++i) {
      if (i + 1 < n_) Eliminate(i, x);
      if (u_(0, i) == T(0)) u_(0, i) = perturbation_;
      if (u_(0, i) == T(0)) return false;
    }
    for (int64_t i = n_ - 1; i >= 0; --i) {
      if (i + 1 < n_) x.row(i) -= u_(1, i) * x.row(i + 1);
      if (i + 2 < n_) x.row(i) -= u_(2, i) * x.row(i + 2);
      x.row(i) /= u_(0, i);
    }
    return true;
  }

 private:
  // Subtracts a multiple of row i from row i + 1, after exchanging them if row i + 1 has the
  // greater pivot.
  void Eliminate(int64_t i, Eigen::Map<RowMajor<T>>& x) {
    T pivot = u_(0, i), next = subdiagonal_(i + 1);
    if (pivoting_ && std::abs(next) > std::abs(pivot)) {
      std::swap(pivot, next);
      u_(0, i) = pivot;
      std::swap(u_(1, i), u_(0, i + 1));
      std::swap(u_(2, i), u_(1, i + 1));
      x.row(i).swap(x.row(i + 1));
    }
    if (next == T(0)) return;
    if (pivot == T(0)) pivot = u_(0, i) = perturbation_;
    const T factor = next / pivot;
    u_(0, i + 1) -= factor * u_(1, i);
    u_(1, i + 1) -= factor * u_(2, i);
    x.row(i + 1) -= factor * x.row(i);
  }

  const bool pivoting_;
  const T perturbation_;
  const int64_t n_;
  RowMajor<T> u_;  // the upper triangle: main diagonal, two above it
  RowVector<T> subdiagonal_;
};

// The result is NaN if a matrix is singular.
template <class T>
class TridiagonalSolveKernel final : public MatrixKernel<T> {
 public:
  TridiagonalSolveKernel() : MatrixKernel<T>(2) {}
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("partial_pivoting", &pivoting_));
    RETURN_IF_ERROR(node.Attr("perturb_singular", &perturb_));
    if (pivoting_ || !perturb_) return OkStatus();
    return InvalidArgument("perturb_singular needs partial_pivoting");
  }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[1].rows, in[1].cols}};
    if (in[0].rows == 3 && in[0].cols == in[1].rows) return OkStatus();
    return InvalidArgument("diagonals must have 3 rows and a column for each of the ", in[1].rows,
                           " rows of rhs, has ", in[0].rows, " rows and ", in[0].cols, " columns");
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    using Real = typename Eigen::NumTraits<T>::Real;
    if (in[1].size() == 0) return OkStatus();
    T perturbation(0);
    if (perturb_) {
      perturbation = std::max(in[0].cwiseAbs().maxCoeff() * std::numeric_limits<Real>::epsilon(),
                              std::numeric_limits<Real>::min());
    }
    out[0] = in[1];
    if (!Elimination<T>(in[0], pivoting_, perturbation).Solve(out[0])) {
      out[0].setConstant(T(std::numeric_limits<Real>::quiet_NaN()));
    }
    return OkStatus();
  }

 private:
  bool pivoting_ = true, perturb_ = false;
};

template <class T>
class TridiagonalMatMulKernel final : public MatrixKernel<T> {
 public:
  TridiagonalMatMulKernel() : MatrixKernel<T>(4) {}

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[3].rows, in[3].cols}};
    for (int i = 0; i < 3; ++i) {
      if (in[i].rows == 1 && in[i].cols == in[3].rows) continue;
      return InvalidArgument("input ", i, " must have 1 row and a column for each of the ",
                             in[3].rows, " rows of rhs, has ", in[i].rows, " rows and ", in[i].cols,
                             " columns");
    }
    return OkStatus();
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    const int64_t n = in[3].rows();
    for (int64_t i = 0; i < n; ++i) {
      out[0].row(i) = in[1](0, i) * in[3].row(i);
      if (i + 1 < n) out[0].row(i) += in[0](0, i) * in[3].row(i + 1);
      if (i > 0) out[0].row(i) += in[2](0, i) * in[3].row(i - 1);
    }
    return OkStatus();
  }
};

Output Int(Output like, int32_t value) {
  return Constant(*like.sink, Tensor::Scalar<int32_t>(value));
}
Output Multiply(Output above, Output main, Output below, Output x) {
  return Call("TridiagonalMatMul", {above, main, below, x});
}
// Return x with its rows moved by one: row i is row i + 1, or i - 1, of x; zero if there is none.
Output RowsBelow(Output row, Output x) {
  return Multiply(OnesLike(row), ZerosLike(row), ZerosLike(row), x);
}
Output RowsAbove(Output row, Output x) {
  return Multiply(ZerosLike(row), ZerosLike(row), OnesLike(row), x);
}
// Returns a secondary diagonal of the conjugate transpose, from the row that holds it in the
// matrix. No op reads the element that wraps around.
Output TransposedDiagonal(Output row, int shift) {
  return Call("Roll", {Conj(row), Int(row, shift), Int(row, -1)});
}
Output SumOfRows(Output x) { return Sum(x, Int(x, -1)); }

Gradients SolveGradient(const GradientScope& g) {
  Outputs rows;
  for (const int32_t i : {0, 1, 2}) {
    rows.push_back(Gather(g.x(0), Int(g.x(0), i), Int(g.x(0), -2)));
  }
  const Output adjoint =
      Pack({TransposedDiagonal(rows[2], -1), Conj(rows[1]), TransposedDiagonal(rows[0], 1)}, -2);
  const Output db = Call("TridiagonalSolve", {adjoint, g.dy()},
                         {{"partial_pivoting", g.attr<bool>("partial_pivoting")},
                          {"perturb_singular", g.attr<bool>("perturb_singular")}});
  const Output x = Conj(g.y()), row = RowVectors(rows[1]);
  return {-Pack({SumOfRows(db * RowsBelow(row, x)), SumOfRows(db * x),
                 SumOfRows(db * RowsAbove(row, x))},
                -2),
          db};
}

Gradients MatMulGradient(const GradientScope& g) {
  const Output x = Conj(g.x(3)), dy = g.dy(), row = g.x(1);
  const Output dx =
      Multiply(TransposedDiagonal(g.x(2), -1), Conj(row), TransposedDiagonal(g.x(0), 1), dy);
  return {RowVectors(SumOfRows(RowsBelow(row, x) * dy)), RowVectors(SumOfRows(x * dy)),
          RowVectors(SumOfRows(RowsAbove(row, x) * dy)), dx};
}

}  // namespace

OP(TridiagonalSolve) {
  return {
      .doc =
          "Solves matrix * x = rhs for tridiagonal matrices. The rows of `diagonals` are "
          "the diagonal above the main one, the main one, and the one below it.",
      .inputs = {{"diagonals", "T"}, {"rhs", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kMatrixTypes}},
      .attrs = {{"partial_pivoting", AttrValue(true)}, {"perturb_singular", AttrValue(false)}},
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(PartialShape rhs, s.WithRankAtLeast(1, 2));
        s.set_output(0, std::move(rhs));
        return OkStatus();
      },
      .gradient = SolveGradient,
      .examples = {{.inputs = {{{{2, 3, 3},
                                 {1, 2, 9, 4, 5, 6, 9, 1, 2, 3, 1, 9, 1, 2, 1, 9, 3, 2}}},
                               {{{2, 3, 2}}}}},
                   {.inputs = {{{{3, 3}, {1, 2, 9, 4, 5, 6, 9, 1, 2}}}, {{{3, 1}}}},
                    .attrs = {{"partial_pivoting", false}}}},
  };
}
KERNEL(TridiagonalSolve, TridiagonalSolveKernel, MATRIX_TYPES);

OP(TridiagonalMatMul) {
  return {
      .doc = "Multiplies a tridiagonal matrix, given by its three diagonals, with rhs.",
      .inputs = {{"superdiag", "T"}, {"maindiag", "T"}, {"subdiag", "T"}, {"rhs", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kMatrixTypes}},
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(PartialShape rhs, s.WithRankAtLeast(3, 2));
        s.set_output(0, std::move(rhs));
        return OkStatus();
      },
      .gradient = MatMulGradient,
      .examples = {{.inputs = {{{{2, 1, 3}}}, {{{2, 1, 3}}}, {{{2, 1, 3}}}, {{{2, 3, 2}}}}}},
  };
}
KERNEL(TridiagonalMatMul, TridiagonalMatMulKernel, MATRIX_TYPES);

}  // namespace penstock
