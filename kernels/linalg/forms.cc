// SPDX-License-Identifier: Apache-2.0
#include "kernels/linalg/forms.h"

#include <complex>

#include "core/op/shape_scope.h"

namespace penstock {

const DTypes kMatrixTypes = {DType::kFloat, DType::kDouble, DType::kComplex64, DType::kComplex128};
const DTypes kRealMatrixTypes = {DType::kFloat, DType::kDouble};

StatusOr<MatrixShape> MatrixShape::Of(const ShapeScope& s, int i) {
  ASSIGN_OR_RETURN(const PartialShape shape, s.WithRankAtLeast(i, 2));
  if (!shape.known_rank()) return MatrixShape();
  return MatrixShape{PartialShape(shape.dims().subspan(0, shape.rank() - 2)),
                     shape.dim(shape.rank() - 2), shape.dim(shape.rank() - 1)};
}

PartialShape MatrixShape::With(std::initializer_list<int64_t> dims) const {
  PartialShape shape = batch;
  if (!batch.known_rank()) return shape;
  for (const int64_t dim : dims) shape.AddDim(dim);
  return shape;
}

StatusOr<int64_t> MatrixShape::Side() const {
  if (rows >= 0 && cols >= 0 && rows != cols) {
    return InvalidArgument("Input matrix must be square: ", rows, " rows and ", cols, " columns");
  }
  return rows >= 0 ? rows : cols;
}

Status SquareShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const MatrixShape m, MatrixShape::Of(s, 0));
  ASSIGN_OR_RETURN(const int64_t side, m.Side());
  s.set_output(0, m.With({side, side}));
  return OkStatus();
}

namespace {

Output Int(Output like, int32_t value) {
  return Constant(*like.sink, Tensor::Scalar<int32_t>(value));
}

}  // namespace

Output Product(Output a, Output b, bool adjoint_a, bool adjoint_b) {
  return Call("BatchMatMulV2", {a, b}, {{"adj_x", adjoint_a}, {"adj_y", adjoint_b}});
}

Output Adjoint(Output x) {
  const Output rank = RankOf(x), one = Int(x, 1);
  const Output batch = Range(Int(x, 0), rank - 2.0, one);
  const Output last_two = Pack({rank - 1.0, rank - 2.0});
  return Call("ConjugateTranspose", {x, ConcatV2({batch, last_two}, Int(x, 0))});
}

Output Band(Output x, int64_t below, int64_t above) {
  return Call("MatrixBandPart", {x, Constant(*x.sink, Tensor::Scalar<int64_t>(below)),
                                 Constant(*x.sink, Tensor::Scalar<int64_t>(above))});
}

Output DiagonalOf(Output x) { return Call("MatrixDiagPart", {x}); }
Output DiagonalMatrix(Output x) { return Call("MatrixDiag", {x}); }
Output WithDiagonal(Output x, Output diagonal) { return Call("MatrixSetDiag", {x, diagonal}); }

Output LowerHalf(Output x) {
  return Band(
      WithDiagonal(x, DiagonalOf(x) * Cast(Constant(*x.sink, Tensor::Scalar(0.5)), x.dtype())), -1,
      0);
}

Output PerMatrix(Output numbers) { return ColumnVectors(ColumnVectors(numbers)); }

Output SafeReciprocal(Output x) { return Call("DivNoNan", {OnesLike(x), x}); }

Output RowVectors(Output x) { return ExpandDims(x, Int(x, -2)); }
Output ColumnVectors(Output x) { return ExpandDims(x, Int(x, -1)); }

}  // namespace penstock
