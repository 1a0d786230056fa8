// SPDX-License-Identifier: Apache-2.0
#include "kernels/ctc/ctc_input.h"

#include <algorithm>

namespace penstock {

StatusOr<CtcInput> CtcInput::Of(const Tensor& logits, const Tensor& sequence_length,
                                StatusCode too_long) {
  if (logits.rank() != 3) {
    return InvalidArgument("inputs must be [time, batch, classes], have shape ",
                           logits.shape().ToString());
  }
  CtcInput in{logits.dim(0), logits.dim(1), logits.dim(2)};
  if (logits.num_elements() == 0) return InvalidArgument("inputs must not be empty");
  if (sequence_length.rank() != 1 || sequence_length.dim(0) != in.batch) {
    return InvalidArgument("sequence_length must have shape [", in.batch, "], has ",
                           sequence_length.shape().ToString());
  }
  for (int64_t b = 0; b < in.batch; ++b) {
    const int64_t length = sequence_length.data<int32_t>()[b];
    if (length > in.time) {
      return Status(too_long,
                    StrCat("sequence_length(", b, ") is ", length, ", must be <= ", in.time));
    }
    in.lengths.push_back(std::max<int64_t>(length, 0));
  }
  return in;
}

Status OutputLabels(KernelContext& ctx, const std::vector<std::vector<int64_t>>& labels, int first,
                    int stride) {
  int64_t count = 0, longest = 0;
  for (const auto& sequence : labels) {
    count += static_cast<int64_t>(sequence.size());
    longest = std::max(longest, static_cast<int64_t>(sequence.size()));
  }
  Tensor *indices, *values, *shape;
  RETURN_IF_ERROR(ctx.Allocate(first, Shape({count, 2}), &indices));
  RETURN_IF_ERROR(ctx.Allocate(first + stride, Shape({count}), &values));
  RETURN_IF_ERROR(ctx.Allocate(first + 2 * stride, Shape({2}), &shape));
  int64_t* index = indices->mutable_data<int64_t>();
  int64_t* value = values->mutable_data<int64_t>();
  for (size_t b = 0; b < labels.size(); ++b) {
    for (size_t i = 0; i < labels[b].size(); ++i) {
      *index++ = static_cast<int64_t>(b);
      *index++ = static_cast<int64_t>(i);
      *value++ = labels[b][i];
    }
  }
  shape->mutable_data<int64_t>()[0] = static_cast<int64_t>(labels.size());
  shape->mutable_data<int64_t>()[1] = longest;
  return OkStatus();
}

Status DecoderShape(ShapeScope& s, int paths) {
  ASSIGN_OR_RETURN(const PartialShape logits, s.WithRank(0, 3));
  ASSIGN_OR_RETURN(const PartialShape lengths, s.WithRank(1, 1));
  const int64_t batch = logits.known_rank() ? logits.dim(1) : PartialShape::kUnknown;
  ASSIGN_OR_RETURN(const PartialShape both, PartialShape({batch}).Merge(lengths));
  for (int p = 0; p < paths; ++p) {
    s.set_output(p, PartialShape({-1, 2}));
    s.set_output(paths + p, PartialShape({-1}));
    s.set_output(2 * paths + p, PartialShape({2}));
  }
  s.set_output(3 * paths, PartialShape({both.dim(0), paths}));
  return OkStatus();
}

}  // namespace penstock
