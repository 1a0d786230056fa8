// SPDX-License-Identifier: Apache-2.0
//
// Svd, also as BatchSvd: the singular value decomposition.
#include <limits>

#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// Computes input = u diag(s) v^H, s descending; NaN if the input is not finite.
template <class T>
class SvdKernel final : public MatrixKernel<T> {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("compute_uv", &vectors_));
    return node.Attr("full_matrices", &full_);
  }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    const int64_t m = in[0].rows, n = in[0].cols, p = std::min(m, n);
    *out = {{p}, {0}, {0}};
    if (std::max(m, n) > kMaxLapackDim) return InvalidArgument("matrices with 2^31 or more rows");
    if (vectors_) *out = {{p}, {m, full_ ? m : p}, {n, full_ ? n : p}};
    return OkStatus();
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) {
      for (auto& o : out) o.setIdentity();
      return OkStatus();
    }
    if (!in[0].allFinite()) {
      for (auto& o : out) o.setConstant(T(std::numeric_limits<float>::quiet_NaN()));
      return OkStatus();
    }
    // LAPACK is column-major, so it sees the transposed matrix: a^T = conj(v) diag(s) u^T. Its u,
    // read in row-major order, is v^H, and its vh, read so, is u.
    RowMajor<T> a = in[0];
    const int64_t m = a.rows(), n = a.cols(), p = std::min(m, n);
    Eigen::Matrix<typename Eigen::NumTraits<T>::Real, Eigen::Dynamic, 1> values(p);
    const int64_t v_cols = full_ ? n : p;
    RowMajor<T> vh(vectors_ ? v_cols : 1, vectors_ ? n : 1);
    RowMajor<T> none(1, 1);
    if (!SingularValues(!vectors_ ? 'N'
                        : full_   ? 'A'
                                  : 'S',
                        n, m, a.data(), values.data(), vh.data(),
                        vectors_ ? out[1].data() : none.data())) {
      return InvalidArgument("the singular value decomposition did not converge");
    }
    out[0] = values.template cast<T>();
    if (vectors_) out[2] = vh.adjoint();
    return OkStatus();
  }

 private:
  bool vectors_ = true, full_ = false;
};

Status SvdShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape a, MatrixShape::Of(s, 0));
  const int64_t p = a.rows < 0 || a.cols < 0 ? -1 : std::min(a.rows, a.cols);
  s.set_output(0, a.With({p}));
  if (!s.attr<bool>("compute_uv")) return OkStatus();
  const bool full = s.attr<bool>("full_matrices");
  s.set_output(1, a.With({a.rows, full ? a.rows : p}));
  s.set_output(2, a.With({a.cols, full ? a.cols : p}));
  return OkStatus();
}

// Returns the gradient of the input, for matrices with at most as many rows as columns. J.
// Townsend: Differentiating the Singular Value Decomposition, 2016. The caller passes the adjoint
// of other matrices, with u and v exchanged.
Output WideGradient(Output s, Output u, Output v, Output ds, Output du, Output dv, bool square) {
  const Output s2 = Square(s);
  const Output f = WithDiagonal(SafeReciprocal(RowVectors(s2) - ColumnVectors(s2)), ZerosLike(s));
  const Output fu = f * Product(u, du, true), fv = f * Product(v, dv, true);
  const Output inner = DiagonalMatrix(ds) + (fu + Adjoint(fu)) * RowVectors(s) +
                       ColumnVectors(s) * (fv + Adjoint(fv));
  const Output da = Product(u, Product(inner, v, false, true));
  if (square) return da;
  // The component of dv that is orthogonal to the columns of v.
  const Output dvt = Adjoint(dv);
  const Output out = dvt - Product(Product(dvt, v), v, false, true);
  return da + Product(u * RowVectors(SafeReciprocal(s)), out);
}

Gradients SvdGradient(const GradientScope& g) {
  const auto fail = [&g](const std::string& why) {
    g.sink().Fail(Unimplemented("the gradient of ", g.node_name(), " (Svd) ", why));
    return Gradients(1);
  };
  if (IsComplex(g.dtype())) return fail("of complex matrices");
  if (!g.attr<bool>("compute_uv")) {
    const Outputs svd = CallN("Svd", {g.x()});
    return {Product(svd[1] * RowVectors(g.dy(0)), svd[2], false, true)};
  }
  const PartialShape shape = g.x().shape();
  const int64_t m = shape.rank() < 2 ? -1 : shape.dim(shape.rank() - 2);
  const int64_t n = shape.rank() < 2 ? -1 : shape.dim(shape.rank() - 1);
  if (m < 0 || n < 0) {
    return fail(
        StrCat("needs the rows and columns of the matrix when the graph is built; they "
               "are ",
               shape.ToString()));
  }
  if (g.attr<bool>("full_matrices") && m != n) return fail("with full_matrices");
  if (m > n) {
    return {Adjoint(WideGradient(g.y(0), g.y(2), g.y(1), g.dy(0), g.dy(2), g.dy(1), false))};
  }
  return {WideGradient(g.y(0), g.y(1), g.y(2), g.dy(0), g.dy(1), g.dy(2), m == n)};
}

OpDef SvdOp() {
  const ExampleTensor square = {{2, 2}, {4, 1, 2, 3}};
  return {
      .doc =
          "Returns the singular values s, descending, and the singular vectors of each "
          "matrix: input = u * diag(s) * v^H. Without full_matrices, u and v have one "
          "column for each singular value.",
      .inputs = {{"input", "T"}},
      .outputs = {{"s", "T"}, {"u", "T"}, {"v", "T"}},
      .types = {{"T", kMatrixTypes}},
      .attrs = {{"compute_uv", AttrValue(true)}, {"full_matrices", AttrValue(false)}},
      .shape = SvdShape,
      .gradient = SvdGradient,
      .examples = {{.inputs = {{square}}},
                   {.inputs = {{{{2, 2, 3}, {3, 1, 2, 0, 2, -1, 1, 4, 1, 0, 1, 2}}}}},
                   {.inputs = {{{{3, 2}, {3, 1, 2, 0, 2, -1}}}}},
                   {.inputs = {{square}}, .attrs = {{"compute_uv", false}}},
                   {.inputs = {{square}}, .attrs = {{"full_matrices", true}}}},
  };
}

}  // namespace

OP(Svd) { return SvdOp(); }
OP(BatchSvd) { return SvdOp(); }
KERNEL(Svd, SvdKernel, MATRIX_TYPES);
KERNEL(BatchSvd, SvdKernel, MATRIX_TYPES);

}  // namespace penstock
