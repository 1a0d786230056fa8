// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/reduction_plan.h"

#include <bitset>

namespace penstock {
namespace {

StatusOr<int> Normalized(int64_t axis, int rank, string_view what) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Expected ", what, " in the range [", -rank, ", ", rank, "), but got ",
                           axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace

StatusOr<ReductionPlan> ReductionPlan::Make(const Shape& input, absl::Span<const int64_t> axes,
                                            bool keep_dims) {
  const int rank = input.rank();
  std::bitset<kMaxRank> reduces;
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension (", axis, " for input with ", rank,
                             " dimension(s))");
    }
    const int a = static_cast<int>(axis < 0 ? axis + rank : axis);
    if (reduces[a]) return InvalidArgument("reduction axis ", axis, " is named twice");
    reduces[a] = true;
  }

  ReductionPlan plan;
  penstock::Dims output;
  Dims kept, reduced;  // innermost first
  int64_t stride = 1;
  int last = -1;  // kind of the previous dimension: 0 kept, 1 reduced
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t size = input.dim(d);
    if (!reduces[d]) {
      output.push_back(size);
    } else if (keep_dims) {
      output.push_back(1);
    }
    if (size != 1) {
      Dims& dims = reduces[d] ? reduced : kept;
      if (last == static_cast<int>(reduces[d])) {
        dims.back().size *= size;
      } else {
        dims.push_back({size, stride});
      }
      last = reduces[d];
      (reduces[d] ? plan.num_reduced : plan.num_outputs) *= size;
      stride *= size;
    }
  }
  std::reverse(output.begin(), output.end());
  plan.output = Shape(output);
  if (!kept.empty()) plan.kept = kept[0];
  if (!reduced.empty()) plan.reduced = reduced[0];
  for (size_t i = kept.size(); i-- > 1;) plan.outer_kept.push_back(kept[i]);
  for (size_t i = reduced.size(); i-- > 1;) plan.outer_reduced.push_back(reduced[i]);
  return plan;
}

int64_t ReductionPlan::Offset(const Dims& dims, int64_t index) {
  int64_t offset = 0;
  for (size_t i = dims.size(); i-- > 0;) {
    offset += index % dims[i].size * dims[i].stride;
    index /= dims[i].size;
  }
  return offset;
}

StatusOr<absl::InlinedVector<int64_t, 4>> AxisValues(const Tensor& axes, string_view what) {
  if (axes.rank() > 1) {
    return InvalidArgument(what, " must be a scalar or a vector, has shape ",
                           axes.shape().ToString());
  }
  absl::InlinedVector<int64_t, 4> values;
  if (axes.dtype() == DType::kInt32) {
    for (int32_t axis : axes.flat<int32_t>()) values.push_back(axis);
  } else if (axes.dtype() == DType::kInt64) {
    for (int64_t axis : axes.flat<int64_t>()) values.push_back(axis);
  } else if (axes.dtype() == DType::kInt16) {
    for (int16_t axis : axes.flat<int16_t>()) values.push_back(axis);
  } else {
    return InvalidArgument(what, " must be int32 or int64, is ", Name(axes.dtype()));
  }
  return values;
}

StatusOr<int> AxisValue(const Tensor& axis, int rank, string_view what) {
  ASSIGN_OR_RETURN(const auto values, AxisValues(axis, what));
  if (values.size() != 1) {
    return InvalidArgument(what, " must be one number, has shape ", axis.shape().ToString());
  }
  return Normalized(values[0], rank, what);
}

}  // namespace penstock
