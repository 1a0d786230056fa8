// SPDX-License-Identifier: Apache-2.0
//
// Functions of square matrices that commute with a change of basis: MatrixSquareRoot,
// MatrixExponential, MatrixLogarithm.
#include <limits>

#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"
#include "kernels/linalg/schur.h"

namespace penstock {
namespace {

// The result is NaN everywhere if the function of the matrix does not exist, or if it is complex
// although the input is real.
template <class T, ComplexMatrix (*kFunction)(const ComplexMatrix&)>
class MatrixFunctionKernel : public MatrixKernel<T> {
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[0].rows, in[0].cols}};
    if (in[0].rows > kMaxLapackDim) return InvalidArgument("matrices with 2^31 or more rows");
    return CheckSquare(in[0]);
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    if (in[0].size() == 0) return OkStatus();
    T none(std::numeric_limits<double>::quiet_NaN());
    if constexpr (Eigen::NumTraits<T>::IsComplex) none.imag(none.real());
    out[0].setConstant(none);
    if (!in[0].allFinite()) return OkStatus();
    const ComplexMatrix y = kFunction(in[0].template cast<std::complex<double>>());
    if (!y.allFinite()) return OkStatus();
    if constexpr (Eigen::NumTraits<T>::IsComplex) {
      out[0] = y.template cast<T>();
    } else {
      // Imaginary parts that come from rounding are far smaller than this.
      constexpr double kRealTolerance = 1e-6;
      const double size = y.cwiseAbs().maxCoeff();
      if (y.imag().cwiseAbs().maxCoeff() <= kRealTolerance * size) {
        out[0] = y.real().template cast<T>();
      }
    }
    return OkStatus();
  }
};

template <class T>
using MatrixSquareRootKernel = MatrixFunctionKernel<T, SquareRootOf>;
template <class T>
using MatrixExponentialKernel = MatrixFunctionKernel<T, ExponentialOf>;
template <class T>
using MatrixLogarithmKernel = MatrixFunctionKernel<T, LogarithmOf>;

// Returns the gradient dx of the input. dy = dx y + y dx is a system of n^2 equations for dx. Its
// vector of unknowns is the rows of dx, concatenated.
Gradients SquareRootGradient(const GradientScope& g) {
  const Output root = Adjoint(g.y()), ones = DiagonalMatrix(OnesLike(DiagonalOf(root)));
  const auto number = [&](int32_t n) { return g.Const<int32_t>(n); };
  const auto kronecker = [](Output a, Output b) {
    return Call("Einsum", {Outputs{a, b}}, {{"equation", "...ij,...kl->...ikjl"}});
  };
  const Output left = kronecker(root, ones), right = kronecker(ones, Conj(g.y()));
  const Output shape = ShapeOf(root), rank = RankOf(root);
  const Output side = Gather(shape, rank - 1.0, number(0)), equations = side * side;
  const Output batch = Call("Slice", {shape, Pack(Outputs{number(0)}), Pack(Outputs{rank - 2.0})});
  const auto with_batch = [&](Output rows, Output cols) {
    return ConcatV2({batch, Pack(Outputs{rows, cols})}, number(0));
  };
  const Output system = Reshape(left + right, with_batch(equations, equations));
  const Output flat = Reshape(g.dy(), with_batch(equations, number(1)));
  return {Reshape(Call("MatrixSolve", {system, flat}), shape)};
}

OpDef MatrixFunctionOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}},
      .shape = SquareShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{2, 2, 2}, {4, 1, 2, 3, 2, 0.5, -1, 1}}}}}},
  };
}

}  // namespace

OP(MatrixSquareRoot) {
  return MatrixFunctionOp(
      "Returns the square root of each matrix: the matrix whose square is the input.", kMatrixTypes,
      SquareRootGradient);
}
KERNEL(MatrixSquareRoot, MatrixSquareRootKernel, MATRIX_TYPES);

OP(MatrixExponential) {
  return MatrixFunctionOp("Returns the exponential of each matrix, I + X + X^2 / 2! + ....",
                          kMatrixTypes, nullptr);
}
KERNEL(MatrixExponential, MatrixExponentialKernel, MATRIX_TYPES);

OP(MatrixLogarithm) {
  return MatrixFunctionOp(
      "Returns the logarithm of each matrix: the matrix whose exponential is the input.",
      {DType::kComplex64, DType::kComplex128}, nullptr);
}
KERNEL(MatrixLogarithm, MatrixLogarithmKernel, std::complex<float>, std::complex<double>);

}  // namespace penstock
