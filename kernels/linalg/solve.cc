// SPDX-License-Identifier: Apache-2.0
//
// MatrixInverse, MatrixSolve, MatrixTriangularSolve, also under their old Batch names: solve linear
// equations.
#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// Computes the solution of a x = b, or of a^H x = b. InvalidArgument if the matrix is not
// invertible, or if it contains NaN.
template <class T>
Status Solve(const Eigen::Map<const RowMajor<T>>& a, bool adjoint, const RowMajor<T>& b,
             Eigen::Map<RowMajor<T>>& x) {
  using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  Columns lu = a, right = b;
  if (adjoint) lu = a.adjoint();
  const int64_t n = a.rows();
  std::vector<int> pivots(n);
  LuFactor(n, lu.data(), pivots.data());
  for (int64_t i = 0; i < n; ++i) {
    if (!(std::abs(lu(i, i)) > 0)) return InvalidArgument("Input matrix is not invertible.");
  }
  LuSolve(n, b.cols(), lu.data(), pivots.data(), right.data());
  x = right;
  return OkStatus();
}

template <class T>
class MatrixInverseKernel final : public MatrixKernel<T> {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("adjoint", &adjoint_); }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[0].rows, in[0].cols}};
    return CheckSquare(in[0]);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) return OkStatus();
    const Status status =
        Solve<T>(in[0], adjoint_, RowMajor<T>::Identity(in[0].rows(), in[0].cols()), out[0]);
    return status.ok() ? status : InvalidArgument("Input is not invertible.");
  }

 private:
  bool adjoint_ = false;
};

Status CheckSystem(const MatrixSizes& in, OutputDims* out) {
  if (!in[0].square()) {
    return InvalidArgument("First input (lhs) must be a square matrix, has ", in[0].rows,
                           " rows and ", in[0].cols, " columns");
  }
  if (in[0].rows != in[1].rows) {
    return InvalidArgument("Input matrix and rhs are incompatible: ", in[0].rows, " and ",
                           in[1].rows, " rows");
  }
  *out = {{in[1].rows, in[1].cols}};
  if (std::max(in[1].rows, in[1].cols) > kMaxLapackDim) {
    return InvalidArgument("matrices with 2^31 or more rows or columns");
  }
  return OkStatus();
}

template <class T>
class MatrixSolveKernel final : public MatrixKernel<T> {
 public:
  MatrixSolveKernel() : MatrixKernel<T>(2) {}
  Status Init(const KernelInit& node) override { return node.Attr("adjoint", &adjoint_); }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    return CheckSystem(in, out);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0 || in[1].size() == 0) return OkStatus();
    return Solve<T>(in[0], adjoint_, in[1], out[0]);
  }

 private:
  bool adjoint_ = false;
};

// A zero on the diagonal gives infinities and NaN.
template <class T>
class TriangularSolveKernel final : public MatrixKernel<T> {
 public:
  TriangularSolveKernel() : MatrixKernel<T>(2, /*broadcasts=*/true) {}
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("lower", &lower_));
    return node.Attr("adjoint", &adjoint_);
  }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    return CheckSystem(in, out);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0 || in[1].size() == 0) return OkStatus();
    out[0] = in[1];
    TriangularSolve(lower_, adjoint_, in[0].rows(), in[1].cols(), in[0].data(), out[0].data());
    return OkStatus();
  }

 private:
  bool lower_ = true, adjoint_ = false;
};

template <bool kBroadcasts>
Status SystemShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape a, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(MatrixShape b, MatrixShape::Of(s, 1));
  ASSIGN_OR_RETURN(const int64_t side, a.Side());
  if (side >= 0 && b.rows >= 0 && side != b.rows) {
    return InvalidArgument("Input matrix and rhs are incompatible: ", side, " and ", b.rows,
                           " rows");
  }
  ASSIGN_OR_RETURN(b.batch, kBroadcasts ? Broadcast(a.batch, b.batch) : a.batch.Merge(b.batch));
  s.set_output(0, b.With({std::max(side, b.rows), b.cols}));
  return OkStatus();
}

Gradients InverseGradient(const GradientScope& g) {
  const Output y = g.y();
  const bool adjoint = g.attr<bool>("adjoint");
  return {-Product(y, Product(g.dy(), y, adjoint, !adjoint), !adjoint, false)};
}

// Returns the gradient of `a`: -db x^H, or its adjoint -x db^H if `adjoint`.
Output OuterProduct(bool adjoint, Output db, Output x) {
  return adjoint ? -Product(x, db, false, true) : -Product(db, x, false, true);
}

Gradients SolveGradient(const GradientScope& g) {
  const bool adjoint = g.attr<bool>("adjoint");
  const Output db = Call("MatrixSolve", {g.x(0), g.dy()}, {{"adjoint", !adjoint}});
  return {OuterProduct(adjoint, db, g.y()), db};
}

Gradients TriangularSolveGradient(const GradientScope& g) {
  const bool adjoint = g.attr<bool>("adjoint"), lower = g.attr<bool>("lower");
  const Output db =
      Call("MatrixTriangularSolve", {g.x(0), g.dy()}, {{"lower", lower}, {"adjoint", !adjoint}});
  const Output full = OuterProduct(adjoint, db, g.y());
  const Output da = lower ? Band(full, -1, 0) : Band(full, 0, -1);
  return {SumToShapeOf(da, g.x(0)), SumToShapeOf(db, g.x(1))};
}

const ExampleTensor kSquare = {{2, 2, 2}, {4, 1, 2, 3, 2, 0.5, -1, 1}};

OpDef InverseOp(const DTypes& types) {
  return {
      .doc = "Returns the inverse of each matrix, or of its adjoint.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .attrs = {{"adjoint", AttrValue(false)}},
      .shape = SquareShape,
      .gradient = InverseGradient,
      .examples = {{.inputs = {{kSquare}}}, {.inputs = {{kSquare}}, .attrs = {{"adjoint", true}}}},
  };
}

OpDef SolveOp(const DTypes& types) {
  return {
      .doc = "Solves matrix * x = rhs, or the same with the adjoint of the matrix.",
      .inputs = {{"matrix", "T"}, {"rhs", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .attrs = {{"adjoint", AttrValue(false)}},
      .shape = SystemShape<false>,
      .gradient = SolveGradient,
      .examples = {{.inputs = {{kSquare}, {{{2, 2, 3}}}}},
                   {.inputs = {{kSquare}, {{{2, 2, 1}}}}, .attrs = {{"adjoint", true}}}},
  };
}

OpDef TriangularSolveOp(const DTypes& types) {
  return {
      .doc =
          "Solves matrix * x = rhs, or the same with the adjoint, for a triangular matrix. "
          "Reads only its lower (or upper) triangle.",
      .inputs = {{"matrix", "T"}, {"rhs", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .attrs = {{"lower", AttrValue(true)}, {"adjoint", AttrValue(false)}},
      .shape = SystemShape<true>,
      .gradient = TriangularSolveGradient,
      .examples = {{.inputs = {{kSquare}, {{{2, 2, 3}}}}},
                   {.inputs = {{kSquare}, {{{2, 1}}}},
                    .attrs = {{"lower", false}, {"adjoint", true}}}},
  };
}

}  // namespace

OP(MatrixInverse) { return InverseOp(kMatrixTypes); }
OP(BatchMatrixInverse) { return InverseOp(kRealMatrixTypes); }
KERNEL(MatrixInverse, MatrixInverseKernel, MATRIX_TYPES);
KERNEL(BatchMatrixInverse, MatrixInverseKernel, REAL_MATRIX_TYPES);

OP(MatrixSolve) { return SolveOp(kMatrixTypes); }
OP(BatchMatrixSolve) { return SolveOp(kRealMatrixTypes); }
KERNEL(MatrixSolve, MatrixSolveKernel, MATRIX_TYPES);
KERNEL(BatchMatrixSolve, MatrixSolveKernel, REAL_MATRIX_TYPES);

OP(MatrixTriangularSolve) { return TriangularSolveOp(kMatrixTypes); }
OP(BatchMatrixTriangularSolve) { return TriangularSolveOp(kRealMatrixTypes); }
KERNEL(MatrixTriangularSolve, TriangularSolveKernel, MATRIX_TYPES);
KERNEL(BatchMatrixTriangularSolve, TriangularSolveKernel, REAL_MATRIX_TYPES);

}  // namespace penstock
