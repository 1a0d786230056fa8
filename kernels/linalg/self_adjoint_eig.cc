// SPDX-License-Identifier: Apache-2.0
//
// SelfAdjointEigV2 and its older form SelfAdjointEig, also under their old Batch names.
#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

template <class T>
using RealVector = Eigen::Matrix<typename Eigen::NumTraits<T>::Real, Eigen::Dynamic, 1>;
template <class T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

// Computes the eigenvalues, ascending, from the lower triangle of the matrix. If `wanted`, the
// columns of `vectors` become the eigenvectors. InvalidArgument if LAPACK does not converge, or the
// triangle is not finite.
template <class T>
Status Decompose(const Eigen::Map<const RowMajor<T>>& matrix, bool wanted, RealVector<T>* values,
                 Columns<T>* vectors) {
  *vectors = matrix;
  values->resize(matrix.rows());
  if (matrix.template triangularView<Eigen::Lower>().toDenseMatrix().allFinite() &&
      SelfAdjointEigenvalues('L', wanted, matrix.rows(), vectors->data(), values->data())) {
    return OkStatus();
  }
  return InvalidArgument(
      "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
}

Status CheckSide(const MatrixSize& size) {
  if (size.rows > kMaxLapackDim) return InvalidArgument("matrices with 2^31 or more rows");
  return CheckSquare(size);
}

// Returns the eigenvalues, ascending, and the eigenvectors as columns.
template <class T>
class SelfAdjointEigV2Kernel final : public MatrixKernel<T> {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("compute_v", &vectors_); }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    const int64_t n = in[0].rows;
    // If vectors are not wanted, output 1 is empty for every matrix.
    *out = {{n}, vectors_ ? Dims{n, n} : Dims{0}};
    return CheckSide(in[0]);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) return OkStatus();
    RealVector<T> values;
    Columns<T> vectors;
    RETURN_IF_ERROR(Decompose<T>(in[0], vectors_, &values, &vectors));
    out[0] = values.template cast<T>();
    if (vectors_) out[1] = vectors;
    return OkStatus();
  }

 private:
  bool vectors_ = true;
};

// The output is one matrix: the eigenvalues are its first row, the eigenvectors the rows below.
template <class T>
class SelfAdjointEigKernel final : public MatrixKernel<T> {
 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[0].rows + 1, in[0].cols}};
    return CheckSide(in[0]);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) return OkStatus();
    RealVector<T> values;
    Columns<T> vectors;
    RETURN_IF_ERROR(Decompose<T>(in[0], true, &values, &vectors));
    out[0].row(0) = values;
    out[0].bottomRows(in[0].rows()) = vectors;
    return OkStatus();
  }
};

Status EigV2Shape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape m, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(const int64_t n, m.Side());
  s.set_output(0, m.With({n}));
  s.set_output(1, s.attr<bool>("compute_v") ? m.With({n, n}) : PartialShape());
  return OkStatus();
}

Status EigShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape m, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(const int64_t n, m.Side());
  s.set_output(0, m.With({n < 0 ? n : n + 1, n}));
  return OkStatus();
}

// Returns the gradient of the input. Because the op reads only the lower triangle, the gradient is
// a lower triangle, to which the gradient of the upper triangle is added.
Gradients EigV2Gradient(const GradientScope& g) {
  Output da;
  if (g.attr<bool>("compute_v")) {
    const Output e = g.y(0), v = g.y(1);
    const Output gaps = RowVectors(e) - ColumnVectors(e);
    const Output f = WithDiagonal(SafeReciprocal(gaps), ZerosLike(e));
    const Output inner = DiagonalMatrix(g.dy(0)) + f * Product(v, g.dy(1), true);
    da = Product(v, Product(inner, v, false, true));
  } else {
    const Output v = Call("SelfAdjointEigV2", {g.x()}, {{"compute_v", true}}).Sibling(1);
    da = Product(v, Product(DiagonalMatrix(g.dy(0)), v, false, true));
  }
  return {LowerHalf(da + Adjoint(da))};
}

OpDef EigV2Op(const DTypes& types) {
  return {
      .doc =
          "Returns the eigenvalues, ascending, and the eigenvectors (as columns) of self- "
          "adjoint matrices. Reads only the lower triangle.",
      .inputs = {{"input", "T"}},
      .outputs = {{"e", "T"}, {"v", "T"}},
      .types = {{"T", types}},
      .attrs = {{"compute_v", AttrValue(true)}},
      .shape = EigV2Shape,
      .gradient = EigV2Gradient,
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 9, 1, 3, 2, 9, 0.5, 1}}}}},
                   {.inputs = {{{{2, 2}, {4, 9, 1, 3}}}}, .attrs = {{"compute_v", false}}}},
  };
}

OpDef EigOp() {
  return {
      .doc =
          "Returns the eigenvalues of self-adjoint matrices as the first row of the output, and "
          "the eigenvectors as the columns below it. New programs should use SelfAdjointEigV2.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kRealMatrixTypes}},
      .shape = EigShape,
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 1, 3, 2, 0.5, 0.5, 1}}}}}},
  };
}

}  // namespace

OP(SelfAdjointEigV2) { return EigV2Op(kMatrixTypes); }
OP(BatchSelfAdjointEigV2) { return EigV2Op(kRealMatrixTypes); }
KERNEL(SelfAdjointEigV2, SelfAdjointEigV2Kernel, MATRIX_TYPES);
KERNEL(BatchSelfAdjointEigV2, SelfAdjointEigV2Kernel, REAL_MATRIX_TYPES);

OP(SelfAdjointEig) { return EigOp(); }
OP(BatchSelfAdjointEig) { return EigOp(); }
KERNEL(SelfAdjointEig, SelfAdjointEigKernel, REAL_MATRIX_TYPES);
KERNEL(BatchSelfAdjointEig, SelfAdjointEigKernel, REAL_MATRIX_TYPES);

}  // namespace penstock
