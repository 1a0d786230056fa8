// SPDX-License-Identifier: Apache-2.0
//
// MatrixSetDiag (also as BatchMatrixSetDiag), MatrixSetDiagV2, MatrixSetDiagV3: matrices with their
// diagonals replaced.
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/array/diagonal_band.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

Status CheckDiagonal(const PartialShape& wanted, const PartialShape& input,
                     const PartialShape& diagonal) {
  if (wanted.Compatible(diagonal)) return OkStatus();
  return InvalidArgument("must have diagonal.shape == ", wanted.ToString(), " for input.shape ",
                         input.ToString(), ", got ", diagonal.ToString());
}

class MatrixSetDiagKernel final : public DiagonalKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &diagonal = ctx.input(1);
    const Shape shape = input.shape();
    if (shape.rank() < 2) {
      return InvalidArgument("input must be at least 2-dim, received shape: ", shape.ToString());
    }
    ASSIGN_OR_RETURN(const DiagonalBand band, BandOf(ctx, 2));
    ASSIGN_OR_RETURN(const PartialShape packed, band.Packed(shape));
    RETURN_IF_ERROR(CheckDiagonal(packed, shape, diagonal.shape()));
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    if (output->raw_data() != input.raw_data()) {
      CopyElements(input.dtype(), input.raw_data(), output->mutable_raw_data(),
                   input.num_elements());
    }
    MoveBand(band, BandMove::kUnpack, shape, diagonal.dtype(), diagonal.raw_data(),
             output->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }
};

Status MatrixSetDiagShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRankAtLeast(0, 2));
  ASSIGN_OR_RETURN(const auto band, BandOf(s, 2));
  if (input.known_rank() && band.has_value()) {
    ASSIGN_OR_RETURN(const PartialShape packed, band->Packed(input));
    RETURN_IF_ERROR(CheckDiagonal(packed, input, s.input(1)));
  }
  s.set_output(0, input);
  return OkStatus();
}

std::vector<Gradient> MatrixSetDiagGradient(const GradientScope& g, int version) {
  const BandCalls calls{g, version, 2};
  std::vector<Gradient> dx(g.num_inputs());
  dx[0] = calls.Set(g.dy(), ZerosLike(g.x(1)));
  dx[1] = calls.Part(g.dy());
  return dx;
}

std::vector<Example> MatrixSetDiagExamples(int version) {
  if (version == 1) return {{.inputs = {{{{2, 3, 4}}}, {{{2, 3}}}}}};
  return {{.inputs = {{{{2, 3, 4}}}, {{{2, 4, 3}}}, {{{2}, {-1, 2}}}}},
          {.inputs = {{{{2, 3, 4}}}, {{{2, 1}}}, {{.values = {-2}}}}}};
}

OpDef MatrixSetDiagOp(int version) {
  OpDef op = {
      .doc = version == 1
                 ? "Replaces the diagonals of the matrices in the input."
                 : "Replaces the diagonals k, or k[0] to k[1], of the matrices in the input. "
                   "`diagonal` has the uppermost first.",
      .inputs = {{"input", "T"}, {"diagonal", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = AlignAttr(version),
      .shape = MatrixSetDiagShape,
      .gradient = [version](const GradientScope& g) { return MatrixSetDiagGradient(g, version); },
      .examples = MatrixSetDiagExamples(version),
      .reuses = Reuse::kFirst,
  };
  if (version > 1) op.inputs.push_back({"k", "int32"});
  return op;
}

OP(MatrixSetDiag) { return MatrixSetDiagOp(1); }
OP(BatchMatrixSetDiag) { return MatrixSetDiagOp(1); }
OP(MatrixSetDiagV2) { return MatrixSetDiagOp(2); }
OP(MatrixSetDiagV3) { return MatrixSetDiagOp(3); }
KERNEL_ANY_TYPE(MatrixSetDiag, MatrixSetDiagKernel);
KERNEL_ANY_TYPE(BatchMatrixSetDiag, MatrixSetDiagKernel);
KERNEL_ANY_TYPE(MatrixSetDiagV2, MatrixSetDiagKernel);
KERNEL_ANY_TYPE(MatrixSetDiagV3, MatrixSetDiagKernel);

}  // namespace
}  // namespace penstock
