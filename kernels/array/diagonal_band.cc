// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/diagonal_band.h"

#include <algorithm>

#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

int64_t LengthOf(int64_t d, int64_t rows, int64_t cols) {
  return std::max<int64_t>(std::min(rows + std::min<int64_t>(d, 0), cols - std::max<int64_t>(d, 0)),
                           0);
}

bool Inside(int64_t d, int64_t rows, int64_t cols) {
  return d == 0 || ((rows < 0 || d > -rows) && (cols < 0 || d < cols));
}

}  // namespace

StatusOr<DiagonalBand> DiagonalBand::Of(const Tensor& k) {
  if (k.rank() > 1 || k.num_elements() < 1 || k.num_elements() > 2) {
    return InvalidArgument("k must be a scalar or a vector of one or two elements, has shape ",
                           k.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Dims ends, IntVector(k.Reshaped({k.num_elements()}), "k"));
  if (ends.front() > ends.back()) {
    return InvalidArgument("k must not fall: lower diagonal ", ends.front(), " > upper diagonal ",
                           ends.back());
  }
  return DiagonalBand{.lower = ends.front(), .upper = ends.back()};
}

int64_t DiagonalBand::LongestIn(int64_t rows, int64_t cols) const {
  if (rows < 0 || cols < 0) return PartialShape::kUnknown;
  // The longest diagonal is the one nearest to the main diagonal.
  const int64_t d = lower > 0 ? lower : upper < 0 ? upper : 0;
  return LengthOf(d, rows, cols);
}

Status DiagonalBand::CheckInside(int64_t rows, int64_t cols) const {
  for (const int64_t d : {lower, upper}) {
    if (Inside(d, rows, cols)) continue;
    return InvalidArgument("k is out of bounds: matrices of ", rows, " rows and ", cols,
                           " columns have no diagonal ", d);
  }
  return OkStatus();
}

StatusOr<PartialShape> DiagonalBand::Packed(const PartialShape& matrices) const {
  const int rank = matrices.rank();
  const int64_t rows = matrices.dim(rank - 2), cols = matrices.dim(rank - 1);
  RETURN_IF_ERROR(CheckInside(rows, cols));
  PartialShape shape = SubShape(matrices, 0, rank - 2);
  if (count() > 1) shape.AddDim(count());
  shape.AddDim(LongestIn(rows, cols));
  return PartialShape::Make(shape.dims());
}

void MoveBand(const DiagonalBand& band, BandMove move, const Shape& shape, DType dtype,
              const void* from, void* to, Scheduler& threads) {
  if (shape.num_elements() == 0) return;
  const int64_t rows = shape.dim(shape.rank() - 2), cols = shape.dim(shape.rank() - 1);
  const int64_t batch = shape.num_elements() / (rows * cols);
  const int64_t longest = band.LongestIn(rows, cols), packed = band.count() * longest;
  const bool pack = move == BandMove::kPack;
  const int64_t first = std::min(band.upper, cols - 1), last = std::max(band.lower, 1 - rows);
  for (int64_t d = first; d >= last; --d) {
    const int64_t length = LengthOf(d, rows, cols);
    const bool right = (d >= 0 && band.right_above) || (d <= 0 && band.right_below);
    const int64_t row_at = (band.upper - d) * longest + (right ? longest - length : 0);
    const int64_t matrix_at = d < 0 ? -d * cols : d;
    StridedCopy copy;
    copy.Add(batch, pack ? rows * cols : packed, pack ? packed : rows * cols);
    copy.Add(length, pack ? cols + 1 : 1, pack ? 1 : cols + 1);
    CopyStrided(dtype, copy, ElementAt(from, dtype, pack ? matrix_at : row_at),
                ElementAt(to, dtype, pack ? row_at : matrix_at), threads);
  }
}

Status DiagonalKernel::Init(const KernelInit& node) {
  if (!node.op.name.ends_with("V3")) return OkStatus();
  std::string align;
  RETURN_IF_ERROR(node.Attr("align", &align));
  align_.right_above = align.starts_with("RIGHT");
  align_.right_below = align.ends_with("RIGHT");
  return OkStatus();
}

StatusOr<DiagonalBand> DiagonalKernel::BandOf(const KernelContext& ctx, int k) const {
  if (k >= ctx.num_inputs()) return DiagonalBand();
  ASSIGN_OR_RETURN(DiagonalBand band, DiagonalBand::Of(ctx.input(k)));
  band.right_above = align_.right_above;
  band.right_below = align_.right_below;
  return band;
}

StatusOr<Tensor> PaddingOf(const KernelContext& ctx, int i, DType dtype) {
  if (i >= ctx.num_inputs()) {
    Tensor zero(dtype, Shape());
    ZeroElements(dtype, zero.mutable_raw_data(), 1);
    return zero;
  }
  const Tensor& padding = ctx.input(i);
  if (padding.rank() == 0) return padding;
  return InvalidArgument("padding_value must be a scalar, has shape ", padding.shape().ToString());
}

StatusOr<std::optional<DiagonalBand>> BandOf(const ShapeScope& s, int k) {
  if (k >= s.num_inputs()) return std::optional(DiagonalBand());
  if (s.constant(k) == nullptr) return std::optional<DiagonalBand>();
  ASSIGN_OR_RETURN(const DiagonalBand band, DiagonalBand::Of(*s.constant(k)));
  return std::optional(band);
}

std::vector<AttrDef> AlignAttr(int version) {
  if (version < 3) return {};
  return {{"align", OneOf{{"LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"}}, "RIGHT_LEFT"}};
}

Output BandCalls::CallOp(const char* op, std::vector<NodeInput> inputs) const {
  if (version == 1) return Call(op, inputs);
  Attrs attrs;
  if (version == 3) attrs["align"] = g.attr<std::string>("align");
  return Call(StrCat(op, "V", version), inputs, attrs);
}

Output BandCalls::Part(Output matrices) const {
  if (version == 1) return CallOp("MatrixDiagPart", {matrices});
  const Output zero = Cast(g.Const(0.0), matrices.dtype());
  return CallOp("MatrixDiagPart", {matrices, g.x(k), zero});
}

Output BandCalls::Set(Output matrices, Output diagonals) const {
  std::vector<NodeInput> inputs = {matrices, diagonals};
  if (version > 1) inputs.push_back(g.x(k));
  return CallOp("MatrixSetDiag", inputs);
}

Output Total(Output x) {
  const auto number = [&](int32_t n) { return Constant(*x.sink, Tensor::Scalar<int32_t>(n)); };
  return Sum(x, Range(number(0), RankOf(x), number(1)));
}

}  // namespace penstock
