// SPDX-License-Identifier: Apache-2.0
#include "kernels/math/reduction_op.h"

#include <vector>

#include "kernels/engine/reduction_plan.h"

namespace penstock {
namespace {

// Returns, for each dimension, whether it is reduced. InvalidArgument if the axes are wrong.
StatusOr<std::vector<bool>> Reduced(absl::Span<const int64_t> axes, int rank) {
  std::vector<bool> reduced(rank);
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension (", axis, " for input with ", rank,
                             " dimension(s))");
    }
    const int64_t a = axis < 0 ? axis + rank : axis;
    if (reduced[a]) return InvalidArgument("reduction axis ", axis, " is named twice");
    reduced[a] = true;
  }
  return reduced;
}

// Returns the input's shape with ones for the axes, computed by ops when the step runs.
Output KeptDims(const GradientScope& g) {
  const Output rank = RankOf(g.x());
  const Output zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  const Output axes = Reshape(Cast(g.x(1), DType::kInt32), g.Const(Tensor::Vector<int32_t>({-1})));
  const Output positive = Call("FloorMod", {axes + rank, rank});
  return Call("DynamicStitch", {Outputs{Range(zero, rank, one), positive},
                                Outputs{ShapeOf(g.x()), OnesLike(positive)}});
}

const std::vector<Example>& ReductionExamples() {
  static const auto& examples = *new std::vector<Example>{
      {.inputs = {{{{2, 3}}}, {{{1}, {1}}}}},
      {.inputs = {{{{2, 3, 2}}}, {{{2}, {0, -1}}}}, .attrs = {{"keep_dims", true}}},
      {.inputs = {{{{2, 3}}}, {{{2}, {0, 1}}}}},
  };
  return examples;
}

}  // namespace

OpDef ReductionOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"input", "T"}, {"reduction_indices", "Tidx"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}, {"Tidx", kIndex, DType::kInt32}},
      .attrs = {{"keep_dims", AttrValue(false)}},
      .shape = ReductionShape,
      .gradient = std::move(gradient),
      .examples = ReductionExamples(),
  };
}

OpDef LogicalReductionOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"input", "bool"}, {"reduction_indices", "Tidx"}},
      .outputs = {{"output", "bool"}},
      .types = {{"Tidx", kIndex, DType::kInt32}},
      .attrs = {{"keep_dims", AttrValue(false)}},
      .shape = ReductionShape,
      .gradient = NoGradient,
      .examples = ReductionExamples(),
  };
}

Status ReductionShape(ShapeScope& s) {
  const PartialShape& input = s.input(0);
  const bool keep_dims = s.attr<bool>("keep_dims");
  if (!input.known_rank()) return UnknownShape(s);
  std::vector<int64_t> axes;
  if (!s.ConstantInts(1, &axes)) {
    s.set_output(0, keep_dims ? PartialShape::UnknownOfRank(input.rank()) : PartialShape());
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<bool> reduced, Reduced(axes, input.rank()));
  PartialShape output = PartialShape::Scalar();
  for (int d = 0; d < input.rank(); ++d) {
    if (!reduced[d]) {
      output.AddDim(input.dim(d));
    } else if (keep_dims) {
      output.AddDim(1);
    }
  }
  s.set_output(0, std::move(output));
  return OkStatus();
}

Output WithKeptDims(const GradientScope& g, Output reduced) {
  const PartialShape x = g.x().shape(), y = g.y().shape();
  // A scalar broadcasts to every shape.
  if (g.attr<bool>("keep_dims") || (y.known_rank() && y.rank() == 0)) return reduced;
  const Tensor* axes = g.x(1).constant();
  if (axes == nullptr || !x.fully_known()) return Reshape(reduced, KeptDims(g));
  const auto values = AxisValues(axes->Reshaped({axes->num_elements()}), "reduction_indices");
  const auto gone = values.ok() ? Reduced(*values, x.rank()) : values.status();
  if (!gone.ok()) return Reshape(reduced, KeptDims(g));  // the forward op reports wrong axes
  std::vector<int64_t> dims;
  for (int d = 0; d < x.rank(); ++d) dims.push_back((*gone)[d] ? 1 : x.dim(d));
  return Reshape(reduced, g.Const(Tensor::Vector<int64_t>(dims)));
}

Output BroadcastToInput(const GradientScope& g, Output reduced) {
  return BroadcastTo(WithKeptDims(g, reduced), ShapeOf(g.x()));
}

}  // namespace penstock
