// SPDX-License-Identifier: Apache-2.0
//
// Qr: the QR decomposition of matrices.
#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// Computes input = q r by Householder reflections.
template <class T>
class QrKernel final : public MatrixKernel<T> {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("full_matrices", &full_); }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    const int64_t m = in[0].rows, n = in[0].cols, p = full_ ? m : std::min(m, n);
    *out = {{m, p}, {p, n}};
    if (std::max(m, n) > kMaxLapackDim) return InvalidArgument("matrices with 2^31 or more rows");
    return OkStatus();
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) {
      out[0].setIdentity();
      return OkStatus();
    }
    using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    Columns a = in[0], q(out[0].rows(), out[0].cols());
    QrFactors(a.rows(), a.cols(), a.data(), q.cols(), q.data());
    out[0] = q;
    for (Eigen::Index i = 0; i < out[1].rows(); ++i) {
      for (Eigen::Index j = 0; j < out[1].cols(); ++j) out[1](i, j) = j < i ? T(0) : a(i, j);
    }
    return OkStatus();
  }

 private:
  bool full_ = false;
};

Status QrShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape a, MatrixShape::Of(s, 0));
  const bool full = s.attr<bool>("full_matrices");
  const int64_t least = a.rows < 0 || a.cols < 0 ? -1 : std::min(a.rows, a.cols);
  const int64_t p = full ? a.rows : least;
  s.set_output(0, a.With({a.rows, p}));
  s.set_output(1, a.With({p, a.cols}));
  return OkStatus();
}

// Returns x r^-H.
Output SolveRight(Output x, Output r) {
  return Adjoint(
      Call("MatrixTriangularSolve", {r, Adjoint(x)}, {{"lower", false}, {"adjoint", false}}));
}

// Returns the gradient of the input, for matrices with at least as many rows as columns. S. F.
// Walter, L. Lehmann, R. Lamour: On evaluating higher-order derivatives of the QR decomposition of
// tall matrices with full column rank. 2012.
Output TallGradient(Output q, Output r, Output dq, Output dr) {
  const Output qdq = Product(q, dq, true), rdr = Product(r, dr, false, true);
  const Output skew = qdq - Adjoint(qdq) + rdr - Adjoint(rdr);
  return Product(q, dr + SolveRight(Band(skew, -1, 0), r)) + SolveRight(dq - Product(q, qdq), r);
}

Gradients QrGradient(const GradientScope& g) {
  const auto fail = [&g](const std::string& why) {
    g.sink().Fail(Unimplemented("the gradient of ", g.node_name(), " (Qr) ", why));
    return Gradients(1);
  };
  if (IsComplex(g.dtype())) return fail("of complex matrices");
  const PartialShape shape = g.x().shape();
  const int64_t m = shape.rank() < 2 ? -1 : shape.dim(shape.rank() - 2);
  const int64_t n = shape.rank() < 2 ? -1 : shape.dim(shape.rank() - 1);
  if (m < 0 || n < 0) {
    return fail(
        StrCat("needs the rows and columns of the matrix when the graph is built; they "
               "are ",
               shape.ToString()));
  }
  if (g.attr<bool>("full_matrices") && m > n) return fail("with full_matrices");
  const Output q = g.y(0), r = g.y(1), dq = g.dy(0), dr = g.dy(1);
  if (m >= n) return {TallGradient(q, r, dq, dr)};
  // In a wide matrix, only the first columns, a square matrix, are decomposed; the remaining
  // columns are multiplied by q^H.
  const auto left_and_right = [&](Output x) {
    return CallN(
        "SplitV",
        {x,
         g.Const(Tensor::Vector<int32_t>({static_cast<int32_t>(m), static_cast<int32_t>(n - m)})),
         g.Const<int32_t>(-1)},
        {{"num_split", 2}});
  };
  const Outputs a = left_and_right(g.x()), u = left_and_right(r), du = left_and_right(dr);
  const Output d_left = TallGradient(q, u[0], dq + Product(a[1], du[1], false, true), du[0]);
  return {ConcatV2({d_left, Product(q, du[1])}, g.Const<int32_t>(-1))};
}

}  // namespace

OP(Qr) {
  return {
      .doc =
          "Factorizes each matrix as q * r: q has orthonormal columns, r is upper "
          "triangular. Without full_matrices, q has only the first min(rows, columns) "
          "columns.",
      .inputs = {{"input", "T"}},
      .outputs = {{"q", "T"}, {"r", "T"}},
      .types = {{"T", kMatrixTypes}},
      .attrs = {{"full_matrices", AttrValue(false)}},
      .shape = QrShape,
      .gradient = QrGradient,
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 2, 3, 2, 0.5, -1, 1}}}}},
                   {.inputs = {{{{3, 2}, {3, 1, 2, 0, 2, -1}}}}},
                   {.inputs = {{{{2, 3}, {3, 1, 2, 1, 2, -1}}}}},
                   {.inputs = {{{{2, 2}, {3, 1, 2, 0}}}}, .attrs = {{"full_matrices", true}}}},
  };
}
KERNEL(Qr, QrKernel, MATRIX_TYPES);

}  // namespace penstock
