// SPDX-License-Identifier: Apache-2.0
#include "kernels/math/segments.h"

#include <limits>

#include "kernels/engine/reduction_plan.h"

namespace penstock {

void FoldSegments(Scheduler& threads, SegmentFold fold, const SegmentRows& rows, int64_t count,
                  void* y) {
  // Every piece scans all ids, so the number of pieces is small, and it is 1 if there is little
  // work.
  const int64_t work = (static_cast<int64_t>(rows.segments.size()) + count) * rows.row;
  const int64_t pieces =
      std::clamp<int64_t>(work / (64 << 10), 1, std::clamp<int64_t>(count, 1, 16));
  threads.ParallelFor(pieces, 0.5 * work / pieces, [&](int64_t begin, int64_t end) {
    fold(rows, count * begin / pieces, count * end / pieces, y);
  });
}

Status FoldIntoOutput(KernelContext& ctx, SegmentFold fold, const Tensor& data, SegmentRows rows,
                      int64_t count) {
  Dims dims(data.shape().dims().begin(), data.shape().dims().end());
  dims[0] = count;
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  Tensor* y;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &y));
  if (shape.num_elements() == 0) return OkStatus();
  rows.data = data.raw_data();
  rows.row = shape.num_elements() / count;
  FoldSegments(ctx.threads(), fold, rows, count, y->mutable_raw_data());
  return OkStatus();
}

std::vector<int64_t> AsInt64(const Tensor& ints) {
  if (ints.dtype() == DType::kInt32) {
    const auto flat = ints.flat<int32_t>();
    return {flat.begin(), flat.end()};
  }
  const auto flat = ints.flat<int64_t>();
  return {flat.begin(), flat.end()};
}

Status CheckSorted(absl::Span<const int64_t> segments) {
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i] < 0) {
      return InvalidArgument("segment ids must be >= 0: segment_ids[", i, "] = ", segments[i]);
    }
    // Refuses this id because the number of segments, the largest id + 1, would overflow.
    if (segments[i] == std::numeric_limits<int64_t>::max()) {
      return InvalidArgument("segment_ids[", i, "] = ", segments[i], " is too large");
    }
    if (i > 0 && segments[i] < segments[i - 1]) {
      return InvalidArgument("segment ids are not increasing: segment_ids[", i, "] = ", segments[i],
                             " comes after ", segments[i - 1]);
    }
  }
  return OkStatus();
}

Status CheckRows(absl::Span<const int64_t> rows, int64_t limit) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= limit) {
      return InvalidArgument("Bad: indices[", i, "] == ", rows[i], " out of range [0, ", limit,
                             ")");
    }
  }
  return OkStatus();
}

StatusOr<UnsortedSegments> UnsortedSegments::Make(const Shape& data, const Shape& ids,
                                                  const Tensor& num_segments) {
  ASSIGN_OR_RETURN(const auto counts, AxisValues(num_segments, "num_segments"));
  if (counts.size() != 1 || counts[0] < 0) {
    return InvalidArgument("num_segments must be one number, zero or more; is ",
                           num_segments.ToString());
  }
  if (ids.rank() > data.rank() ||
      !std::equal(ids.dims().begin(), ids.dims().end(), data.dims().begin())) {
    return InvalidArgument("the shape of segment_ids, ", ids.ToString(),
                           ", must be the beginning of the shape of data, ", data.ToString());
  }
  UnsortedSegments s{.count = counts[0], .ids = ids.num_elements()};
  Dims dims = {s.count};
  for (int d = ids.rank(); d < data.rank(); ++d) {
    dims.push_back(data.dim(d));
    s.row *= data.dim(d);
  }
  ASSIGN_OR_RETURN(s.output, Shape::Make(dims));
  return s;
}

Status UnsortedSegmentShape(ShapeScope& s) {
  const PartialShape& data = s.input(0);
  const PartialShape& ids = s.input(1);
  if (!data.known_rank() || !ids.known_rank()) return UnknownShape(s);
  if (ids.rank() > data.rank()) {
    return InvalidArgument("segment_ids has more dimensions, ", ids.ToString(), ", than data, ",
                           data.ToString());
  }
  std::vector<int64_t> count;
  const bool known = s.ConstantInts(2, &count) && count.size() == 1 && count[0] >= 0;
  PartialShape output = {known ? count[0] : PartialShape::kUnknown};
  for (int d = ids.rank(); d < data.rank(); ++d) output.AddDim(data.dim(d));
  s.set_output(0, std::move(output));
  return OkStatus();
}

Output RowsOfSegments(const GradientScope& g, Output per_segment) {
  const Output zero = g.Const<int32_t>(0), all = g.Const(Tensor::Vector<int32_t>({-1}));
  const Output ids = Reshape(g.x(1), all);
  const Output rows = Gather(per_segment, Maximum(ids, ZerosLike(ids)), zero);
  const Output counted = Select(GreaterEqual(ids, ZerosLike(ids)), rows, ZerosLike(rows));
  return Reshape(counted, ShapeOf(g.x(0)));
}

}  // namespace penstock
