// SPDX-License-Identifier: Apache-2.0
#include "kernels/rnn/lstm_arguments.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

Status ReadFloat(const KernelInit& node, const char* name, float* value) {
  if (node.attrs.count(name) == 0) return OkStatus();
  RETURN_IF_ERROR(node.Attr(name, value));
  if (std::isfinite(*value)) return OkStatus();
  return InvalidArgument(name, " must be a finite number, is ", *value);
}

}  // namespace

Status ReadLstmAttrs(const KernelInit& node, LstmCell* cell) {
  RETURN_IF_ERROR(ReadFloat(node, "forget_bias", &cell->forget_bias));
  RETURN_IF_ERROR(ReadFloat(node, "cell_clip", &cell->clip));
  return node.Attr("use_peephole", &cell->peephole);
}

Status CheckCellSizes(const LstmCell& cell) {
  constexpr int64_t kSizeMax = int64_t{1} << 28;
  if (cell.batch <= kSizeMax && cell.inputs <= kSizeMax && cell.cells <= kSizeMax)
    return OkStatus();
  return InvalidArgument("batch ", cell.batch, ", inputs ", cell.inputs, " and cells ", cell.cells,
                         " must each be at most ", kSizeMax);
}

Status RequireShape(const Tensor& input, const char* name, const Shape& shape) {
  if (input.shape() == shape) return OkStatus();
  return InvalidArgument(name, " must have shape ", shape.ToString(), ", has ",
                         input.shape().ToString());
}

Status CheckLstmInputs(const KernelContext& ctx, int x_at, bool has_time, LstmCell* cell) {
  const Tensor &x = ctx.input(x_at + kX), &cs_prev = ctx.input(x_at + kCsPrev);
  const int rank = has_time ? 3 : 2;
  if (x.rank() != rank) {
    return InvalidArgument("x must have rank ", rank, ", has shape ", x.shape().ToString());
  }
  if (cs_prev.rank() != 2) {
    return InvalidArgument("cs_prev must have rank 2, has shape ", cs_prev.shape().ToString());
  }
  cell->batch = x.dim(rank - 2);
  cell->inputs = x.dim(rank - 1);
  cell->cells = cs_prev.dim(1);
  RETURN_IF_ERROR(CheckCellSizes(*cell));
  const int64_t gates = 4 * cell->cells;
  const Shape state({cell->batch, cell->cells});
  RETURN_IF_ERROR(RequireShape(cs_prev, "cs_prev", state));
  RETURN_IF_ERROR(RequireShape(ctx.input(x_at + kHPrev), "h_prev", state));
  RETURN_IF_ERROR(RequireShape(ctx.input(x_at + kW), "w", Shape({cell->joined(), gates})));
  RETURN_IF_ERROR(RequireShape(ctx.input(x_at + kB), "b", Shape({gates})));
  const char* const names[] = {"wci", "wcf", "wco"};
  for (int i = 0; i < 3; ++i) {
    const Tensor& peephole = ctx.input(x_at + kWci + i);
    RETURN_IF_ERROR(RequireShape(peephole, names[i], Shape({cell->cells})));
  }
  return OkStatus();
}

Status FloatOutputs::Add(KernelContext& ctx, const Shape& shape) {
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(static_cast<int>(views_.size()), shape, &output));
  std::fill_n(views_.emplace_back(output).data(), shape.num_elements(), 0.0f);
  return OkStatus();
}

std::vector<ArgDef> LstmInputArgs() {
  return {{"x", "T"},   {"cs_prev", "T"}, {"h_prev", "T"}, {"w", "T"},
          {"wci", "T"}, {"wcf", "T"},     {"wco", "T"},    {"b", "T"}};
}

std::vector<ArgDef> LstmStateArgs(bool with_h) {
  std::vector<ArgDef> args = {{"i", "T"}, {"cs", "T"}, {"f", "T"},
                              {"o", "T"}, {"ci", "T"}, {"co", "T"}};
  if (with_h) args.push_back({"h", "T"});
  return args;
}

double RowsTimesWeights(const FlopsScope& scope, int x, int weights) {
  const PartialShape& shape = scope.inputs[x];
  const bool known = shape.known_rank() && shape.rank() > 0 && shape.dims().back() > 0;
  const double columns = known ? static_cast<double>(shape.dims().back()) : kUnknownDim;
  return 2 * Elements(shape) / columns * Elements(scope.inputs[weights]);
}

Status LstmStateShapes(ShapeScope& s, int x_at, bool has_time) {
  const int rank = has_time ? 3 : 2;
  ASSIGN_OR_RETURN(const PartialShape x, s.WithRank(x_at + kX, rank));
  ASSIGN_OR_RETURN(const PartialShape cs_prev, s.WithRank(x_at + kCsPrev, 2));
  if (!x.known_rank()) return UnknownShape(s);
  Dims dims(x.dims().begin(), x.dims().end());
  dims.back() = cs_prev.known_rank() ? cs_prev.dim(1) : PartialShape::kUnknown;
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, PartialShape(dims));
  return OkStatus();
}

}  // namespace penstock
