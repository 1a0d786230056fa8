// SPDX-License-Identifier: Apache-2.0
//
// MatrixDiagPart (also as BatchMatrixDiagPart), MatrixDiagPartV2, MatrixDiagPartV3: the diagonals
// of matrices.
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/array/diagonal_band.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

class MatrixDiagPartKernel final : public DiagonalKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() < 2) {
      return InvalidArgument("input must be at least 2-dim, received shape: ",
                             input.shape().ToString());
    }
    ASSIGN_OR_RETURN(const DiagonalBand band, BandOf(ctx, 1));
    ASSIGN_OR_RETURN(const PartialShape packed, band.Packed(input.shape()));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(packed.dims()));
    ASSIGN_OR_RETURN(const Tensor padding, PaddingOf(ctx, 2, input.dtype()));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (band.count() > 1) FillWith(padding.raw_data(), *output, ctx.threads());
    MoveBand(band, BandMove::kPack, input.shape(), input.dtype(), input.raw_data(),
             output->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }
};

Status MatrixDiagPartShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRankAtLeast(0, 2));
  ASSIGN_OR_RETURN(const auto band, BandOf(s, 1));
  if (!input.known_rank() || !band.has_value()) return OkStatus();
  ASSIGN_OR_RETURN(PartialShape packed, band->Packed(input));
  s.set_output(0, std::move(packed));
  return OkStatus();
}

std::vector<Gradient> MatrixDiagPartGradient(const GradientScope& g, int version) {
  const Output set = BandCalls{g, version, 1}.Set(ZerosLike(g.x()), g.dy());
  if (version == 1) return {set};
  // The padding's gradient is the sum over the padding. (TensorFlow gives none.)
  return {set, Gradient(), Total(g.dy()) - Total(set)};
}

std::vector<Example> MatrixDiagPartExamples(int version) {
  if (version == 1) return {};
  return {{.inputs = {{{{2, 3, 4}}}, {{{2}, {-1, 2}}}, {{.values = {0.5}}}}},
          {.inputs = {{{{2, 3, 4}}}, {{.values = {-2}}}, {{.values = {0.5}}}}}};
}

OpDef MatrixDiagPartOp(int version) {
  OpDef op = {
      .doc =
          version == 1
              ? "Returns the diagonals of the matrices in the input's last two dimensions."
              : "Returns the diagonals k, or k[0] to k[1] (the uppermost first), of the matrices "
                "in the input's last two dimensions. Shorter diagonals are padded with "
                "padding_value.",
      .inputs = {{"input", "T"}},
      .outputs = {{"diagonal", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = AlignAttr(version),
      .shape = MatrixDiagPartShape,
      .gradient = [version](const GradientScope& g) { return MatrixDiagPartGradient(g, version); },
      .examples = MatrixDiagPartExamples(version),
  };
  if (version > 1) {
    op.inputs.insert(op.inputs.end(), {{"k", "int32"}, {"padding_value", "T"}});
  }
  return op;
}

OP(MatrixDiagPart) { return MatrixDiagPartOp(1); }
OP(BatchMatrixDiagPart) { return MatrixDiagPartOp(1); }
OP(MatrixDiagPartV2) { return MatrixDiagPartOp(2); }
OP(MatrixDiagPartV3) { return MatrixDiagPartOp(3); }
KERNEL_ANY_TYPE(MatrixDiagPart, MatrixDiagPartKernel);
KERNEL_ANY_TYPE(BatchMatrixDiagPart, MatrixDiagPartKernel);
KERNEL_ANY_TYPE(MatrixDiagPartV2, MatrixDiagPartKernel);
KERNEL_ANY_TYPE(MatrixDiagPartV3, MatrixDiagPartKernel);

}  // namespace
}  // namespace penstock
