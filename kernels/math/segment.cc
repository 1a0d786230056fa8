// SPDX-License-Identifier: Apache-2.0
//
// SegmentSum, SegmentMean, SegmentProd, SegmentMin, SegmentMax: reduce rows with the same id; the
// ids are sorted.
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/math/segment_gradients.h"
#include "kernels/math/segments.h"

namespace penstock {
namespace {

class SegmentKernel : public Kernel {
 public:
  explicit SegmentKernel(SegmentFold fold) : fold_(fold) {}
  Status Compute(KernelContext& ctx) override {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    if (data.rank() < 1) return InvalidArgument("data must have rank 1 or more, is a scalar");
    if (ids.rank() != 1 || ids.dim(0) != data.dim(0)) {
      return InvalidArgument(
          "segment_ids should be a vector of the same size as dimension 0 of data: shapes ",
          ids.shape().ToString(), " and ", data.shape().ToString());
    }
    const std::vector<int64_t> segments = AsInt64(ids);
    RETURN_IF_ERROR(CheckSorted(segments));
    return FoldIntoOutput(ctx, fold_, data, {.segments = segments, .zero_if_empty = true},
                          CountOf(segments));
  }

 private:
  const SegmentFold fold_;
};

template <class F>
struct Segment {
  template <class T>
  struct Kernel final : SegmentKernel {
    Kernel() : SegmentKernel(FoldSegmentRange<F, T>) {}
  };
};

Status SegmentShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, 1));
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  if (shape.known_rank()) shape.set_dim(0, PartialShape::kUnknown);
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Output Rows(const GradientScope& g, Output per_segment) {
  return Gather(per_segment, g.x(1), g.Const<int32_t>(0));
}

Gradients SumGradient(const GradientScope& g) { return {Rows(g, g.dy()), Gradient()}; }

Gradients MeanGradient(const GradientScope& g) {
  const Output ones = OnesLike(g.x());
  return {Rows(g, g.dy()) / Rows(g, Call("SegmentSum", {ones, g.x(1)})), Gradient()};
}

Gradients ProdGradient(const GradientScope& g) {
  const auto fold = [&g](const char* op) {
    return [&g, op](Output x) { return Call(op, {x, g.x(1)}); };
  };
  return {SegmentProductGradient(g, fold("SegmentProd"), fold("SegmentSum"),
                                 [&g](Output y) { return Rows(g, y); }),
          Gradient()};
}

Gradients ExtremumGradient(const GradientScope& g) {
  return {SegmentExtremumGradient(
              g,
              [&g](Output x) {
                return Call("SegmentSum", {x, g.x(1)});
              },
              [&g](Output y) { return Rows(g, y); }),
          Gradient()};
}

OpDef SegmentOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"data", "T"}, {"segment_ids", "Tindices"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}, {"Tindices", kIndex}},
      .shape = SegmentShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{4, 2}}}, {{{4}, {0, 0, 2, 2}}}}}},
  };
}

}  // namespace

OP(SegmentSum) {
  return SegmentOp(
      "output[s] = the sum of the rows of data whose segment id is s; zero if there are "
      "none. The ids must be sorted.",
      kNumber, SumGradient);
}

OP(SegmentMean) {
  return SegmentOp(
      "output[s] = the mean of the rows of data whose segment id is s; zero if there "
      "are none. The ids must be sorted.",
      kNumber, MeanGradient);
}

OP(SegmentProd) {
  return SegmentOp(
      "output[s] = the product of the rows of data whose segment id is s; one if there "
      "are none. The ids must be sorted.",
      kNumber, ProdGradient);
}

OP(SegmentMin) {
  return SegmentOp(
      "output[s] = the smallest elements of the rows of data whose segment id is s; "
      "zero if there are none. The ids must be sorted.",
      kReal, ExtremumGradient);
}

OP(SegmentMax) {
  return SegmentOp(
      "output[s] = the largest elements of the rows of data whose segment id is s; zero "
      "if there are none. The ids must be sorted.",
      kReal, ExtremumGradient);
}
KERNEL(SegmentSum, Segment<SegmentSumFold>::Kernel, NUMBER_TYPES);
KERNEL(SegmentMean, Segment<SegmentMeanFold>::Kernel, NUMBER_TYPES);
KERNEL(SegmentProd, Segment<SegmentProdFold>::Kernel, NUMBER_TYPES);
KERNEL(SegmentMin, Segment<SegmentMinFold>::Kernel, REAL_TYPES);
KERNEL(SegmentMax, Segment<SegmentMaxFold>::Kernel, REAL_TYPES);

}  // namespace penstock
