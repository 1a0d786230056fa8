// SPDX-License-Identifier: Apache-2.0
//
// BandedTriangularSolve: solves systems with triangular matrices that are given by their diagonals.
#include "core/op/shape_scope.h"
#include "kernels/linalg/forms.h"
#include "kernels/linalg/matrices.h"

namespace penstock {
namespace {

// The rows of the input are the diagonals, the uppermost first. The diagonals of a lower triangle
// are aligned right in their rows, those of an upper triangle left.
template <class T>
class BandedTriangularSolveKernel final : public MatrixKernel<T> {
 public:
  BandedTriangularSolveKernel() : MatrixKernel<T>(2, /*broadcasts=*/true) {}
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("lower", &lower_));
    return node.Attr("adjoint", &adjoint_);
  }

 protected:
  Status Outputs(const MatrixSizes& in, OutputDims* out) const override {
    *out = {{in[1].rows, in[1].cols}};
    if (in[0].rows >= 1 && in[0].cols == in[1].rows) return OkStatus();
    return InvalidArgument("matrix must have a row for each of its diagonals, at least one, and a ",
                           "column for each of the ", in[1].rows, " rows of rhs, has ", in[0].rows,
                           " rows and ", in[0].cols, " columns");
  }
  Status ComputeOne(const MatrixInputs<T>& in, double, MatrixOutputs<T>& out) const override {
    const auto& bands = in[0];
    auto& x = out[0];
    const int64_t n = bands.cols(), reach = std::min<int64_t>(bands.rows(), n) - 1;
    const bool down = lower_ != adjoint_;  // forward substitution: x[i] depends on earlier elements
    x = in[1];
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = down ? step : n - 1 - step;
      for (int64_t d = 1; d <= std::min(reach, step); ++d) {
        const int64_t j = down ? i - d : i + d;
        x.row(i) -= At(bands, d, adjoint_ ? j : i) * x.row(j);
      }
      const T pivot = At(bands, 0, i);
      if (pivot == T(0)) return InvalidArgument("Input matrix is not invertible.");
      x.row(i) /= pivot;
    }
    return OkStatus();
  }

 private:
  // Returns the element of row `row` that is d places from the diagonal; for the adjoint, the
  // conjugate of that element.
  T At(const Eigen::Map<const RowMajor<T>>& bands, int64_t d, int64_t row) const {
    const T element = bands(lower_ ? d : bands.rows() - 1 - d, row);
    return adjoint_ ? Eigen::numext::conj(element) : element;
  }

  bool lower_ = true, adjoint_ = false;
};

Status BandedShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape a, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(MatrixShape b, MatrixShape::Of(s, 1));
  if (a.cols >= 0 && b.rows >= 0 && a.cols != b.rows) {
    return InvalidArgument("Input matrix and rhs are incompatible: ", a.cols, " columns and ",
                           b.rows, " rows");
  }
  ASSIGN_OR_RETURN(b.batch, Broadcast(a.batch, b.batch));
  s.set_output(0, b.With({std::max(a.cols, b.rows), b.cols}));
  return OkStatus();
}

// Returns the shape of the bands: the batch of the full matrices, and the last two dimensions of
// `a`. A single diagonal also has a row dimension.
Output ShapeOfBands(Output a, Output full) {
  const auto list = [&](int32_t n) { return Constant(*a.sink, Tensor::Vector<int32_t>({n})); };
  const Output batch = Call("Slice", {ShapeOf(full), list(0), Pack(Outputs{RankOf(full) - 2.0})});
  const Output own = Call("Slice", {ShapeOf(a), Pack(Outputs{RankOf(a) - 2.0}), list(2)});
  return ConcatV2({batch, own}, Constant(*a.sink, Tensor::Scalar<int32_t>(0)));
}

Gradients BandedGradient(const GradientScope& g) {
  const bool lower = g.attr<bool>("lower"), adjoint = g.attr<bool>("adjoint");
  const Output a = g.x(0), x = g.y();
  const Output db =
      Call("BandedTriangularSolve", {a, g.dy()}, {{"lower", lower}, {"adjoint", !adjoint}});
  const Output da = -(adjoint ? Product(x, db, false, true) : Product(db, x, false, true));
  const Output zero = g.Const<int32_t>(0);
  const Output reach = Gather(ShapeOf(a), RankOf(a) - 2.0, zero) - 1.0;
  const Output k = lower ? Pack({-reach, zero}) : Pack({zero, reach});
  const Output bands =
      Call("MatrixDiagPartV3", {da, k, Cast(g.Const(0.0), a.dtype())}, {{"align", "LEFT_RIGHT"}});
  return {SumToShapeOf(Reshape(bands, ShapeOfBands(a, da)), a), SumToShapeOf(db, g.x(1))};
}

OP(BandedTriangularSolve) {
  return {
      .doc =
          "Solves matrix * x = rhs, or the same with the adjoint, for a lower (or upper) "
          "triangular band matrix. The rows of `matrix` are its diagonals, the uppermost "
          "first.",
      .inputs = {{"matrix", "T"}, {"rhs", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kMatrixTypes}},
      .attrs = {{"lower", AttrValue(true)}, {"adjoint", AttrValue(false)}},
      .shape = BandedShape,
      .gradient = BandedGradient,
      .examples = {{.inputs = {{{{2, 2, 3}}}, {{{2, 3, 2}}}}},
                   {.inputs = {{{{2, 3}}}, {{{2, 3, 1}}}}, .attrs = {{"adjoint", true}}},
                   {.inputs = {{{{2, 2, 3}}}, {{{3, 1}}}}, .attrs = {{"lower", false}}},
                   {.inputs = {{{{1, 3}}}, {{{3, 1}}}},
                    .attrs = {{"lower", false}, {"adjoint", true}}}},
  };
}
KERNEL(BandedTriangularSolve, BandedTriangularSolveKernel, MATRIX_TYPES);

}  // namespace
}  // namespace penstock
