// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantized/quantization.h"

namespace penstock {

StatusOr<QuantizedRange> RangeInput(const KernelContext& ctx, int min, const char* what) {
  const Tensor &lower = ctx.input(min), &upper = ctx.input(min + 1);
  if (lower.num_elements() != 1 || upper.num_elements() != 1) {
    return InvalidArgument("the range of ", what, " must be two scalars, has shapes ",
                           lower.shape().ToString(), " and ", upper.shape().ToString());
  }
  const QuantizedRange range = {lower.scalar<float>(), upper.scalar<float>()};
  if (std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max) return range;
  return InvalidArgument("the range of ", what, " must be finite with min <= max, is [", range.min,
                         ", ", range.max, "]");
}

Status SetRangeOutputs(KernelContext& ctx, int min, QuantizedRange range) {
  Tensor *lower, *upper;
  RETURN_IF_ERROR(ctx.Allocate(min, Shape(), &lower));
  RETURN_IF_ERROR(ctx.Allocate(min + 1, Shape(), &upper));
  *lower->mutable_data<float>() = range.min;
  *upper->mutable_data<float>() = range.max;
  return OkStatus();
}

}  // namespace penstock
