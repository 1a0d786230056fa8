// SPDX-License-Identifier: Apache-2.0
//
// MatrixDeterminant (also as BatchMatrixDeterminant) and LogMatrixDeterminant.
#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// Returns the logarithm of the determinant's absolute value, which neither overflows nor
// underflows. Sets *sign to the determinant divided by its absolute value, or to 0 if it is 0.
template <class T>
T LogDeterminant(const Eigen::Map<const RowMajor<T>>& matrix, T* sign) {
  using std::abs;
  *sign = T(1);
  typename Eigen::NumTraits<T>::Real log = 0;
  if (matrix.size() == 0) return T(0);
  RowMajor<T> lu = matrix;  // LAPACK reads the transpose: same determinant
  std::vector<int> pivots(matrix.rows());
  LuFactor(matrix.rows(), lu.data(), pivots.data());
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    if (pivots[i] != i + 1) *sign = -*sign;
    const T pivot = lu(i, i);
    const auto size = abs(pivot);
    *sign *= size > 0 ? pivot / size : pivot;
    log += std::log(size);
  }
  return T(log);
}

Status ScalarPerMatrix(const MatrixSizes& in, OutputDims* out, size_t outputs) {
  out->assign(outputs, Dims{});
  return CheckSquare(in[0]);
}

template <class T>
class MatrixDeterminantKernel final : public MatrixKernel<T> {
 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    return ScalarPerMatrix(in, out, 1);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    T sign;
    const T log = LogDeterminant<T>(in[0], &sign);
    out[0](0) = sign * std::exp(log);
    return OkStatus();
  }
};

template <class T>
class LogMatrixDeterminantKernel final : public MatrixKernel<T> {
 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    return ScalarPerMatrix(in, out, 2);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    T sign;
    out[1](0) = LogDeterminant<T>(in[0], &sign);
    out[0](0) = sign;
    return OkStatus();
  }
};

Status DeterminantShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape m, MatrixShape::Of(s, 0));
  RETURN_IF_ERROR(m.Side().status());
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, m.batch);
  return OkStatus();
}

Output AdjointInverse(Output x) { return Call("MatrixInverse", {x}, {{"adjoint", true}}); }

Gradients DeterminantGradient(const GradientScope& g) {
  return {PerMatrix(g.dy() * Conj(g.y())) * AdjointInverse(g.x())};
}

Gradients LogDeterminantGradient(const GradientScope& g) {
  return {PerMatrix(g.dy(1)) * AdjointInverse(g.x())};
}

OpDef DeterminantOp(const DTypes& types) {
  return {
      .doc = "The determinant of each matrix.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .shape = DeterminantShape,
      .gradient = DeterminantGradient,
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 2, 3, 2, 0.5, -1, 1}}}}}},
  };
}

}  // namespace

OP(MatrixDeterminant) { return DeterminantOp(kMatrixTypes); }
OP(BatchMatrixDeterminant) { return DeterminantOp(kMatrixTypes); }
KERNEL(MatrixDeterminant, MatrixDeterminantKernel, MATRIX_TYPES);
KERNEL(BatchMatrixDeterminant, MatrixDeterminantKernel, MATRIX_TYPES);

OP(LogMatrixDeterminant) {
  return {
      .doc =
          "The sign of the determinant of each matrix (a number of absolute value one, or "
          "zero), and the logarithm of its absolute value.",
      .inputs = {{"input", "T"}},
      .outputs = {{"sign", "T"}, {"log_abs_determinant", "T"}},
      .types = {{"T", kMatrixTypes}},
      .shape = DeterminantShape,
      .gradient = LogDeterminantGradient,
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 2, 3, 2, 0.5, -1, 1}}}}}},
  };
}
KERNEL(LogMatrixDeterminant, LogMatrixDeterminantKernel, MATRIX_TYPES);

}  // namespace penstock
