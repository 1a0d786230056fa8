// SPDX-License-Identifier: Apache-2.0
//
// SegmentSumV2, SegmentProdV2, SegmentMinV2, SegmentMaxV2: reduce rows with the same id; the ids
// are sorted, and an input gives the number of segments.
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/math/segment_gradients.h"
#include "kernels/math/segments.h"

namespace penstock {
namespace {

class CountedSegmentKernel : public Kernel {
 public:
  explicit CountedSegmentKernel(SegmentFold fold) : fold_(fold) {}
  Status Compute(KernelContext& ctx) override {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    if (data.rank() < 1) return InvalidArgument("data must have rank 1 or more, is a scalar");
    if (ids.rank() != 1) {
      return InvalidArgument("segment_ids should be a vector, has shape ", ids.shape().ToString());
    }
    ASSIGN_OR_RETURN(const UnsortedSegments s,
                     UnsortedSegments::Make(data.shape(), ids.shape(), ctx.input(2)));
    const std::vector<int64_t> segments = AsInt64(ids);
    RETURN_IF_ERROR(CheckSorted(segments));
    if (CountOf(segments) > s.count) {
      return InvalidArgument("segment_ids must be less than num_segments, ", s.count,
                             "; the last one is ", segments.back());
    }
    return FoldIntoOutput(ctx, fold_, data, {.segments = segments}, s.count);
  }

 private:
  const SegmentFold fold_;
};

template <class F>
struct CountedSegment {
  template <class T>
  struct Kernel final : CountedSegmentKernel {
    Kernel() : CountedSegmentKernel(FoldSegmentRange<F, T>) {}
  };
};

Status CountedSegmentShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRankAtLeast(0, 1).status());
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  return UnsortedSegmentShape(s);
}

Output FoldAgain(const GradientScope& g, const char* op, Output x) {
  return Call(op, {x, g.x(1), g.x(2)});
}

Gradients CountedSumGradient(const GradientScope& g) {
  return {RowsOfSegments(g, g.dy()), Gradient(), Gradient()};
}

Gradients CountedProdGradient(const GradientScope& g) {
  return {SegmentProductGradient(
              g, [&g](Output x) { return FoldAgain(g, "SegmentProdV2", x); },
              [&g](Output x) { return FoldAgain(g, "SegmentSumV2", x); },
              [&g](Output y) { return RowsOfSegments(g, y); }),
          Gradient(), Gradient()};
}

Gradients CountedExtremumGradient(const GradientScope& g) {
  return {SegmentExtremumGradient(
              g, [&g](Output x) { return FoldAgain(g, "SegmentSumV2", x); },
              [&g](Output y) { return RowsOfSegments(g, y); }),
          Gradient(), Gradient()};
}

OpDef CountedSegmentOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"data", "T"}, {"segment_ids", "Tindices"}, {"num_segments", "Tnumsegments"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}, {"Tindices", kIndex}, {"Tnumsegments", kIndex, DType::kInt32}},
      .shape = CountedSegmentShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{4, 2}}}, {{{4}, {0, 0, 1, 1}}}, {{{}, {2}}}}}},
  };
}

}  // namespace

OP(SegmentSumV2) {
  return CountedSegmentOp(
      "output[s] = the sum of the rows of data whose segment id is s; zero if there are none. The "
      "ids must be sorted and less than num_segments.",
      kNumber, CountedSumGradient);
}

OP(SegmentProdV2) {
  return CountedSegmentOp(
      "output[s] = the product of the rows of data whose segment id is s; one if there are none. "
      "The ids must be sorted and less than num_segments.",
      kNumber, CountedProdGradient);
}

OP(SegmentMinV2) {
  return CountedSegmentOp(
      "output[s] = the smallest elements of the rows of data whose segment id is s; the largest "
      "number of the type if there are none. The ids must be sorted and less than num_segments.",
      kReal, CountedExtremumGradient);
}

OP(SegmentMaxV2) {
  return CountedSegmentOp(
      "output[s] = the largest elements of the rows of data whose segment id is s; the smallest "
      "number of the type if there are none. The ids must be sorted and less than num_segments.",
      kReal, CountedExtremumGradient);
}
KERNEL(SegmentSumV2, CountedSegment<SegmentSumFold>::Kernel, NUMBER_TYPES);
KERNEL(SegmentProdV2, CountedSegment<SegmentProdFold>::Kernel, NUMBER_TYPES);
KERNEL(SegmentMinV2, CountedSegment<SegmentMinFold>::Kernel, REAL_TYPES);
KERNEL(SegmentMaxV2, CountedSegment<SegmentMaxFold>::Kernel, REAL_TYPES);

}  // namespace penstock
