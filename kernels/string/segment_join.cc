// SPDX-License-Identifier: Apache-2.0
//
// UnsortedSegmentJoin: joins the strings that belong to the same segment.
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

int64_t IntAt(const Tensor& ints, int64_t i) {
  return ints.dtype() == DType::kInt32 ? ints.data<int32_t>()[i] : ints.data<int64_t>()[i];
}

class UnsortedSegmentJoinKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("separator", &separator_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor &inputs = ctx.input(0), &ids = ctx.input(1);
    ASSIGN_OR_RETURN(const int64_t segments, IntScalar(ctx.input(2), "num_segments"));
    if (segments < 0) {
      return InvalidArgument("Number of segments must be non-negative but got ", segments);
    }
    RETURN_IF_ERROR(Check(inputs.shape(), ids, segments));
    Dims dims = {segments};
    for (int d = ids.rank(); d < inputs.rank(); ++d) dims.push_back(inputs.dim(d));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (segments == 0) return OkStatus();
    const int64_t row = shape.num_elements() / segments;
    const std::string* from = inputs.data<std::string>();
    std::string* to = output->mutable_data<std::string>();
    std::vector<bool> begun(segments);
    for (int64_t i = 0; i < ids.num_elements(); ++i, from += row) {
      const int64_t segment = IntAt(ids, i);
      for (int64_t k = 0; k < row; ++k) {
        std::string& text = to[segment * row + k];
        if (begun[segment]) text += separator_;
        text += from[k];
      }
      begun[segment] = true;
    }
    return OkStatus();
  }

 private:
  static Status Check(const Shape& inputs, const Tensor& ids, int64_t segments) {
    if (ids.rank() == 0) return InvalidArgument("Segment_id cannot have rank 0");
    if (ids.rank() > inputs.rank()) {
      return InvalidArgument("segment_ids of rank ", ids.rank(), " for inputs of rank ",
                             inputs.rank());
    }
    for (int d = 0; d < ids.rank(); ++d) {
      if (ids.dim(d) != inputs.dim(d)) {
        return InvalidArgument("Segment dimension is ", ids.dim(d), " while input dimension is ",
                               inputs.dim(d), " in rank ", d);
      }
    }
    for (int64_t i = 0; i < ids.num_elements(); ++i) {
      if (IntAt(ids, i) >= 0 && IntAt(ids, i) < segments) continue;
      return InvalidArgument(
          "segment_ids are not allowed to exceed num_segments or to have negative values: ",
          IntAt(ids, i), " of ", segments);
    }
    return OkStatus();
  }

  std::string separator_;
};

Status SegmentJoinShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape ids, s.WithRankAtLeast(1, 1));
  RETURN_IF_ERROR(s.WithRank(2, 0).status());
  if (!ids.known_rank() || !s.input(0).known_rank()) return UnknownShape(s);
  ASSIGN_OR_RETURN(const PartialShape inputs, s.WithRankAtLeast(0, ids.rank()));
  RETURN_IF_ERROR(SubShape(inputs, 0, ids.rank()).Merge(ids).status());
  std::vector<int64_t> segments;
  if (!s.ConstantInts(2, &segments)) segments = {PartialShape::kUnknown};
  Dims dims = {segments[0]};
  for (int d = ids.rank(); d < inputs.rank(); ++d) dims.push_back(inputs.dim(d));
  return SetOutput(s, 0, dims);
}

OP(UnsortedSegmentJoin) {
  return {
      .doc =
          "Joins the rows of `inputs` whose segment_ids are equal, string by string. A segment "
          "without rows is empty.",
      .inputs = {{"inputs", "string"},
                 {"segment_ids", "Tindices"},
                 {"num_segments", "Tnumsegments"}},
      .outputs = {{"output", "string"}},
      .types = {{"Tindices", kIndex}, {"Tnumsegments", kIndex, DType::kInt32}},
      .attrs = {{"separator", ""}},
      .shape = SegmentJoinShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3, 2}}}, {{{3}, {1, 0, 1}}}, {{.values = {3}}}}}},
  };
}
KERNEL_ANY_TYPE(UnsortedSegmentJoin, UnsortedSegmentJoinKernel);

}  // namespace
}  // namespace penstock
