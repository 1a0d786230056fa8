// SPDX-License-Identifier: Apache-2.0
//
// MatrixDiag (also as BatchMatrixDiag), MatrixDiagV2, MatrixDiagV3: build matrices from their
// diagonals.
#include <algorithm>

#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/array/diagonal_band.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

constexpr int64_t kUnknown = PartialShape::kUnknown;

// Returns the number of batch dimensions of the packed diagonals. InvalidArgument if `diagonal`
// does not have a row for each diagonal of the band.
StatusOr<int> BatchRank(const DiagonalBand& band, const PartialShape& diagonal) {
  const int own = band.count() > 1 ? 2 : 1;
  if (diagonal.rank() < own) {
    return InvalidArgument("diagonal must be at least ", own,
                           "-dim, received shape: ", diagonal.ToString());
  }
  const int64_t rows = own == 1 ? 1 : diagonal.dim(diagonal.rank() - 2);
  if (rows >= 0 && rows != band.count()) {
    return InvalidArgument("diagonal must have a row for each of the ", band.count(),
                           " diagonals of k, has shape ", diagonal.ToString());
  }
  return diagonal.rank() - own;
}

// Computes the size of the matrices from the wanted rows and columns. If one of them is -1, sets it
// to the least size that holds the diagonals; if both are -1, makes the matrices square.
// InvalidArgument if no such matrix has diagonals of length `longest`.
Status MatrixSizes(const DiagonalBand& band, int64_t longest, int64_t* rows, int64_t* cols) {
  const int64_t least_rows = AddDims(longest, std::max<int64_t>(-band.upper, 0));
  const int64_t least_cols = AddDims(longest, std::max<int64_t>(band.lower, 0));
  if (least_rows < 0 || least_cols < 0) {
    return InvalidArgument("diagonals of ", longest, " elements make no matrix");
  }
  if (*rows == -1 && *cols == -1) {
    *rows = *cols = std::max(least_rows, least_cols);
    return OkStatus();
  }
  if (*rows == -1) *rows = least_rows;
  if (*cols == -1) *cols = least_cols;
  if (*rows < least_rows || *cols < least_cols || (*rows > least_rows && *cols > least_cols)) {
    return InvalidArgument("num_rows ", *rows, " and num_cols ", *cols, " do not fit diagonals of ",
                           longest, " elements, which need ", least_rows, " rows and ", least_cols,
                           " columns, at least and in one of them exactly");
  }
  return OkStatus();
}

class MatrixDiagKernel final : public DiagonalKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& diagonal = ctx.input(0);
    ASSIGN_OR_RETURN(const DiagonalBand band, BandOf(ctx, 1));
    ASSIGN_OR_RETURN(const int batch, BatchRank(band, diagonal.shape()));
    int64_t sizes[] = {-1, -1};
    for (int i = 0; i < 2 && ctx.num_inputs() > 1; ++i) {
      ASSIGN_OR_RETURN(sizes[i], IntScalar(ctx.input(i + 2), i == 0 ? "num_rows" : "num_cols"));
    }
    RETURN_IF_ERROR(MatrixSizes(band, diagonal.dim(diagonal.rank() - 1), &sizes[0], &sizes[1]));
    ASSIGN_OR_RETURN(const Tensor padding, PaddingOf(ctx, 4, diagonal.dtype()));
    Dims dims(diagonal.shape().dims().begin(), diagonal.shape().dims().begin() + batch);
    dims.insert(dims.end(), {sizes[0], sizes[1]});
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    FillWith(padding.raw_data(), *output, ctx.threads());
    MoveBand(band, BandMove::kUnpack, shape, diagonal.dtype(), diagonal.raw_data(),
             output->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }
};

// Reads input i, a size; -1 if this version of the op has no such input. Returns false if the input
// is not constant.
bool SizeInput(const ShapeScope& s, int i, int64_t* size) {
  *size = -1;
  if (i >= s.num_inputs()) return true;
  std::vector<int64_t> values;
  if (!s.ConstantInts(i, &values) || values.size() != 1) return false;
  *size = values[0];
  return true;
}

Status MatrixDiagShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape diagonal, s.WithRankAtLeast(0, 1));
  ASSIGN_OR_RETURN(const auto band, BandOf(s, 1));
  if (!diagonal.known_rank() || !band.has_value()) return OkStatus();
  ASSIGN_OR_RETURN(const int batch, BatchRank(*band, diagonal));
  const int64_t longest = diagonal.dim(diagonal.rank() - 1);
  int64_t rows, cols;
  const bool rows_known = SizeInput(s, 2, &rows), cols_known = SizeInput(s, 3, &cols);
  if (rows_known && cols_known && longest >= 0) {
    RETURN_IF_ERROR(MatrixSizes(*band, longest, &rows, &cols));
  }
  Dims dims(diagonal.dims().begin(), diagonal.dims().begin() + batch);
  dims.insert(dims.end(), {std::max(rows, kUnknown), std::max(cols, kUnknown)});
  return SetOutput(s, 0, dims);
}

std::vector<Gradient> MatrixDiagGradient(const GradientScope& g, int version) {
  const Output part = BandCalls{g, version, 1}.Part(g.dy());
  if (version == 1) return {part};
  // The padding's gradient is the sum over all elements outside the diagonals. (TensorFlow gives
  // none.)
  return {part, Gradient(), Gradient(), Gradient(), Total(g.dy()) - Total(part)};
}

std::vector<Example> MatrixDiagExamples(int version) {
  if (version == 1) return {};
  return {{.inputs = {{{{2, 3, 4}}},
                      {{{2}, {-1, 1}}},
                      {{.values = {-1}}},
                      {{.values = {-1}}},
                      {{.values = {0.5}}}}},
          {.inputs = {{{{2, 3}}},
                      {{.values = {1}}},
                      {{.values = {3}}},
                      {{.values = {5}}},
                      {{.values = {0.5}}}}}};
}

OpDef MatrixDiagOp(int version) {
  OpDef op = {
      .doc =
          version == 1
              ? "Returns matrices that have the input's last dimension on the diagonal and zeros "
                "elsewhere."
              : "Returns matrices that have the input's last dimensions as diagonals k, or k[0] "
                "to k[1] (the uppermost first), and padding_value elsewhere.",
      .inputs = {{"diagonal", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = AlignAttr(version),
      .shape = MatrixDiagShape,
      .gradient = [version](const GradientScope& g) { return MatrixDiagGradient(g, version); },
      .examples = MatrixDiagExamples(version),
  };
  if (version > 1) {
    op.inputs.insert(
        op.inputs.end(),
        {{"k", "int32"}, {"num_rows", "int32"}, {"num_cols", "int32"}, {"padding_value", "T"}});
  }
  return op;
}

OP(MatrixDiag) { return MatrixDiagOp(1); }
OP(BatchMatrixDiag) { return MatrixDiagOp(1); }
OP(MatrixDiagV2) { return MatrixDiagOp(2); }
OP(MatrixDiagV3) { return MatrixDiagOp(3); }
KERNEL_ANY_TYPE(MatrixDiag, MatrixDiagKernel);
KERNEL_ANY_TYPE(BatchMatrixDiag, MatrixDiagKernel);
KERNEL_ANY_TYPE(MatrixDiagV2, MatrixDiagKernel);
KERNEL_ANY_TYPE(MatrixDiagV3, MatrixDiagKernel);

}  // namespace
}  // namespace penstock
