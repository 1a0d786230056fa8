// SPDX-License-Identifier: Apache-2.0
//
// SegmentSumV2, SegmentProdV2, SegmentMinV2, SegmentMaxV2: reduce rows with the same id; the ids
// are sorted, and an input gives the number of segments. Rows with other ids are ignored, as in
// TensorFlow's only kernels for these ops, which XLA compiles.
#include <algorithm>

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
    const auto unsorted = std::is_sorted_until(segments.begin(), segments.end());
    if (unsorted != segments.end()) {
      return InvalidArgument("segment ids are not increasing: segment_ids[",
                             unsorted - segments.begin(), "] = ", *unsorted, " comes after ",
                             *(unsorted - 1));
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

// Returns, for each row of input 0, the row of `per_segment` for its segment; zeros for rows that
// were ignored.
Output RowsOfCounted(const GradientScope& g, Output per_segment) {
  const Output ids = Cast(g.x(1), DType::kInt64), count = Cast(g.x(2), DType::kInt64);
  const Output none = ZerosLike(ids);
  const Output counted = LogicalAnd(GreaterEqual(ids, none), Less(ids, count));
  const Output rows = Gather(per_segment, Select(counted, ids, none), g.Const<int32_t>(0));
  return Select(counted, rows, ZerosLike(rows));
}

Output FoldAgain(const GradientScope& g, const char* op, Output x) {
  return Call(op, {x, g.x(1), g.x(2)});
}

Gradients CountedSumGradient(const GradientScope& g) {
  return {RowsOfCounted(g, g.dy()), Gradient(), Gradient()};
}

Gradients CountedProdGradient(const GradientScope& g) {
  return {SegmentProductGradient(
              g, [&g](Output x) { return FoldAgain(g, "SegmentProdV2", x); },
              [&g](Output x) { return FoldAgain(g, "SegmentSumV2", x); },
              [&g](Output y) { return RowsOfCounted(g, y); }),
          Gradient(), Gradient()};
}

Gradients CountedExtremumGradient(const GradientScope& g) {
  return {SegmentExtremumGradient(
              g, [&g](Output x) { return FoldAgain(g, "SegmentSumV2", x); },
              [&g](Output y) { return RowsOfCounted(g, y); }),
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
      .examples = {{.inputs = {{{{4, 2}}}, {{{4}, {0, 0, 1, 1}}}, {{{}, {2}}}}},
                   {.inputs = {{{{4, 2}}}, {{{4}, {-1, 0, 0, 2}}}, {{{}, {2}}}}}},
  };
}

}  // namespace

OP(SegmentSumV2) {
  return CountedSegmentOp(
      "output[s] = the sum of the rows of data whose segment id is s; zero if there are none. The "
      "ids must be sorted. Rows with ids outside of [0, num_segments) are ignored.",
      kNumber, CountedSumGradient);
}

OP(SegmentProdV2) {
  return CountedSegmentOp(
      "output[s] = the product of the rows of data whose segment id is s; one if there are none. "
      "The ids must be sorted. Rows with ids outside of [0, num_segments) are ignored.",
      kNumber, CountedProdGradient);
}

OP(SegmentMinV2) {
  return CountedSegmentOp(
      "output[s] = the smallest elements of the rows of data whose segment id is s; the largest "
      "number of the type if there are none. The ids must be sorted. Rows with ids outside "
      "of [0, num_segments) are ignored.",
      kReal, CountedExtremumGradient);
}

OP(SegmentMaxV2) {
  return CountedSegmentOp(
      "output[s] = the largest elements of the rows of data whose segment id is s; the smallest "
      "number of the type if there are none. The ids must be sorted. Rows with ids outside "
      "of [0, num_segments) are ignored.",
      kReal, CountedExtremumGradient);
}
KERNEL(SegmentSumV2, CountedSegment<SegmentSumFold>::Kernel, NUMBER_TYPES);
KERNEL(SegmentProdV2, CountedSegment<SegmentProdFold>::Kernel, NUMBER_TYPES);
KERNEL(SegmentMinV2, CountedSegment<SegmentMinFold>::Kernel, REAL_TYPES);
KERNEL(SegmentMaxV2, CountedSegment<SegmentMaxFold>::Kernel, REAL_TYPES);

}  // namespace penstock
