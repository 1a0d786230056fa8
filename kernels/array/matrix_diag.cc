// SPDX-License-Identifier: Apache-2.0
//
// Diagonals of batches of matrices: MatrixDiag, MatrixDiagPart, MatrixSetDiag. Each also under its
// old name with "Batch" in front.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// A batch of matrices, and the diagonal of each.
struct Matrices {
  int64_t batch = 1, rows = 0, columns = 0;
  int64_t diagonal() const { return std::min(rows, columns); }
};

StatusOr<Matrices> MatricesOf(const Shape& shape) {
  const int rank = shape.rank();
  if (rank < 2) {
    return InvalidArgument("input must be at least 2-dim, received shape: ", shape.ToString());
  }
  Matrices m{.rows = shape.dim(rank - 2), .columns = shape.dim(rank - 1)};
  for (int i = 0; i < rank - 2; ++i) m.batch *= shape.dim(i);
  return m;
}

void CopyDiagonals(const Matrices& m, bool from_matrices, DType dtype, const void* from, void* to,
                   ThreadPool& threads) {
  const int64_t matrix = m.rows * m.columns, step = m.columns + 1, n = m.diagonal();
  StridedCopy copy;
  copy.Add(m.batch, from_matrices ? matrix : n, from_matrices ? n : matrix);
  copy.Add(n, from_matrices ? step : 1, from_matrices ? 1 : step);
  CopyStrided(dtype, copy, from, to, threads);
}

// [..., rows, columns] -> [..., min(rows, columns)]
PartialShape DiagonalShape(const PartialShape& matrices) {
  PartialShape shape = SubShape(matrices, 0, matrices.rank() - 2);
  const int64_t rows = matrices.dim(matrices.rank() - 2),
                columns = matrices.dim(matrices.rank() - 1);
  shape.AddDim(rows < 0 || columns < 0 ? PartialShape::kUnknown : std::min(rows, columns));
  return shape;
}

class MatrixDiagKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& diagonal = ctx.input(0);
    if (diagonal.rank() < 1) {
      return InvalidArgument("diagonal must be at least 1-dim, received shape: []");
    }
    Dims dims(diagonal.shape().dims().begin(), diagonal.shape().dims().end());
    dims.push_back(dims.back());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    ASSIGN_OR_RETURN(const Matrices m, MatricesOf(shape));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    Zero(*output, ctx.threads());
    CopyDiagonals(m, false, diagonal.dtype(), diagonal.raw_data(), output->mutable_raw_data(),
                  ctx.threads());
    return OkStatus();
  }
};

class MatrixDiagPartKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Matrices m, MatricesOf(input.shape()));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, DiagonalShape(input.shape()).ToShape(), &output));
    CopyDiagonals(m, true, input.dtype(), input.raw_data(), output->mutable_raw_data(),
                  ctx.threads());
    return OkStatus();
  }
};

class MatrixSetDiagKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &diagonal = ctx.input(1);
    const Shape shape = input.shape();
    ASSIGN_OR_RETURN(const Matrices m, MatricesOf(shape));
    const Shape wanted = DiagonalShape(shape).ToShape();
    if (diagonal.shape() != wanted) {
      return InvalidArgument("must have diagonal.shape == ", wanted.ToString(), " for input.shape ",
                             shape.ToString(), ", got ", diagonal.shape().ToString());
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    if (output->raw_data() != input.raw_data()) {
      CopyElements(input.dtype(), input.raw_data(), output->mutable_raw_data(),
                   input.num_elements());
    }
    CopyDiagonals(m, false, diagonal.dtype(), diagonal.raw_data(), output->mutable_raw_data(),
                  ctx.threads());
    return OkStatus();
  }
};

Status MatrixDiagShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape diagonal, s.WithRankAtLeast(0, 1));
  if (!diagonal.known_rank()) return OkStatus();
  Dims dims(diagonal.dims().begin(), diagonal.dims().end());
  dims.push_back(dims.back());
  return SetOutput(s, 0, dims);
}

Status MatrixDiagPartShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRankAtLeast(0, 2));
  if (input.known_rank()) s.set_output(0, DiagonalShape(input));
  return OkStatus();
}

Status MatrixSetDiagShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRankAtLeast(0, 2));
  if (input.known_rank() && !DiagonalShape(input).Compatible(s.input(1))) {
    return InvalidArgument("diagonal must have shape ", DiagonalShape(input).ToString(), ", has ",
                           s.input(1).ToString());
  }
  s.set_output(0, input);
  return OkStatus();
}

OpDef MatrixDiagOp() {
  return {
      .doc = "Matrices with the input's last dimension on the diagonal and zeros elsewhere.",
      .inputs = {{"diagonal", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .shape = MatrixDiagShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MatrixDiagPart", {g.dy()})};
      },
  };
}

OpDef MatrixDiagPartOp() {
  return {
      .doc = "The diagonals of the matrices in the input's last two dimensions.",
      .inputs = {{"input", "T"}},
      .outputs = {{"diagonal", "T"}},
      .types = {{"T", kAllTypes}},
      .shape = MatrixDiagPartShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MatrixSetDiag", {ZerosLike(g.x()), g.dy()})};
      },
  };
}

OpDef MatrixSetDiagOp() {
  return {
      .doc = "The input with the diagonals of its matrices replaced.",
      .inputs = {{"input", "T"}, {"diagonal", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .shape = MatrixSetDiagShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MatrixSetDiag", {g.dy(), ZerosLike(g.x(1))}),
                Call("MatrixDiagPart", {g.dy()})};
      },
      .examples = {{.inputs = {{{{2, 3, 4}}}, {{{2, 3}}}}}},
  };
}

OP(MatrixDiag, (MatrixDiagOp()));
OP(BatchMatrixDiag, (MatrixDiagOp()));
OP(MatrixDiagPart, (MatrixDiagPartOp()));
OP(BatchMatrixDiagPart, (MatrixDiagPartOp()));
OP(MatrixSetDiag, (MatrixSetDiagOp()));
OP(BatchMatrixSetDiag, (MatrixSetDiagOp()));

KERNEL_ANY_TYPE(MatrixDiag, MatrixDiagKernel);
KERNEL_ANY_TYPE(BatchMatrixDiag, MatrixDiagKernel);
KERNEL_ANY_TYPE(MatrixDiagPart, MatrixDiagPartKernel);
KERNEL_ANY_TYPE(BatchMatrixDiagPart, MatrixDiagPartKernel);
KERNEL_ANY_TYPE(MatrixSetDiag, MatrixSetDiagKernel);
KERNEL_ANY_TYPE(BatchMatrixSetDiag, MatrixSetDiagKernel);

}  // namespace
}  // namespace penstock
