// SPDX-License-Identifier: Apache-2.0
//
// UnsortedSegmentProd, UnsortedSegmentMin, UnsortedSegmentMax: reduce the rows that have the same
// id in segment_ids; the ids need not be sorted. (The sum, which also runs on GPUs, is in
// unsorted_segment_sum.cc.)
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/math/segment_gradients.h"
#include "kernels/math/segments.h"

namespace penstock {
namespace {

class UnsortedSegmentKernel : public Kernel {
 public:
  explicit UnsortedSegmentKernel(SegmentFold fold) : fold_(fold) {}
  Status Compute(KernelContext& ctx) override {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    ASSIGN_OR_RETURN(const UnsortedSegments s,
                     UnsortedSegments::Make(data.shape(), ids.shape(), ctx.input(2)));
    const std::vector<int64_t> segments = AsInt64(ids);
    for (size_t i = 0; i < segments.size(); ++i) {
      if (segments[i] >= s.count) {
        return InvalidArgument("segment_ids[", i, "] = ", segments[i], " is out of range [0, ",
                               s.count, ")");
      }
    }
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, s.output, &y));
    if (s.output.num_elements() == 0) return OkStatus();
    FoldSegments(ctx.threads(), fold_,
                 {.data = data.raw_data(), .row = s.row, .segments = segments}, s.count,
                 y->mutable_raw_data());
    return OkStatus();
  }

 private:
  const SegmentFold fold_;
};

template <class F>
struct UnsortedSegment {
  template <class T>
  struct Kernel final : UnsortedSegmentKernel {
    Kernel() : UnsortedSegmentKernel(FoldSegmentRange<F, T>) {}
  };
};

Gradients ProdGradient(const GradientScope& g) {
  const auto fold = [&g](const char* op) {
    return [&g, op](Output x) { return Call(op, {x, g.x(1), g.x(2)}); };
  };
  return {SegmentProductGradient(g, fold("UnsortedSegmentProd"), fold("UnsortedSegmentSum"),
                                 [&g](Output y) { return RowsOfSegments(g, y); }),
          Gradient(), Gradient()};
}

Gradients ExtremumGradient(const GradientScope& g) {
  return {SegmentExtremumGradient(
              g,
              [&g](Output x) {
                return Call("UnsortedSegmentSum", {x, g.x(1), g.x(2)});
              },
              [&g](Output y) { return RowsOfSegments(g, y); }),
          Gradient(), Gradient()};
}

OpDef UnsortedSegmentOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"data", "T"}, {"segment_ids", "Tindices"}, {"num_segments", "Tnumsegments"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}, {"Tindices", kIndex}, {"Tnumsegments", kIndex, DType::kInt32}},
      .shape = UnsortedSegmentShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{4, 2}}}, {{{4}, {1, 0, -1, 1}}}, {{{}, {2}}}}},
                   {.inputs = {{{{2, 2}}}, {{{2, 2}, {1, 0, 0, 1}}}, {{{}, {2}}}}}},
  };
}

}  // namespace

OP(UnsortedSegmentProd) {
  return UnsortedSegmentOp(
      "output[s] = the product of the rows of data whose segment id is s; one if there "
      "are none. Rows with negative ids are ignored.",
      kNumber, ProdGradient);
}

OP(UnsortedSegmentMin) {
  return UnsortedSegmentOp(
      "output[s] = the smallest elements of the rows of data whose segment id is s; the "
      "largest number of the type if there are none. Rows with negative ids are "
      "ignored.",
      kReal, ExtremumGradient);
}

OP(UnsortedSegmentMax) {
  return UnsortedSegmentOp(
      "output[s] = the largest elements of the rows of data whose segment id is s; the "
      "smallest number of the type if there are none. Rows with negative ids are "
      "ignored.",
      kReal, ExtremumGradient);
}
KERNEL(UnsortedSegmentProd, UnsortedSegment<SegmentProdFold>::Kernel, NUMBER_TYPES);
KERNEL(UnsortedSegmentMin, UnsortedSegment<SegmentMinFold>::Kernel, REAL_TYPES);
KERNEL(UnsortedSegmentMax, UnsortedSegment<SegmentMaxFold>::Kernel, REAL_TYPES);

}  // namespace penstock
