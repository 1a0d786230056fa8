// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/row_splits.h"

#include <algorithm>
#include <limits>

#include "kernels/array/arguments.h"

namespace penstock {

StatusOr<std::vector<RowSplits>> SplitsInputs(const KernelContext& ctx, int count, int64_t values,
                                              bool all) {
  std::vector<RowSplits> nested;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const Dims splits, IntVector(ctx.input(i), "row splits"));
    if (splits.empty()) return InvalidArgument("ragged splits may not be empty");
    nested.emplace_back(splits.begin(), splits.end());
  }
  for (int i = 0; i < count; ++i) {
    const RowSplits& splits = nested[i];
    const int64_t items = i + 1 < count ? static_cast<int64_t>(nested[i + 1].size()) - 1 : values;
    if (!std::is_sorted(splits.begin(), splits.end()) || splits[0] < 0) {
      return InvalidArgument("Ragged splits must be sorted and not negative: splits ", i);
    }
    if (splits.back() > items) {
      return InvalidArgument("Ragged splits must not point past values: the last of splits ", i,
                             " is ", splits.back(), ", there are ", items);
    }
    if (all && (splits[0] != 0 || splits.back() != items)) {
      return InvalidArgument("Ragged splits must go from 0 to the number of values, ", items,
                             "; splits ", i, " go from ", splits[0], " to ", splits.back());
    }
  }
  return nested;
}

Status WriteSplits(KernelContext& ctx, int i, const RowSplits& splits) {
  Tensor* out;
  RETURN_IF_ERROR(ctx.Allocate(i, Shape{static_cast<int64_t>(splits.size())}, &out));
  if (out->dtype() == DType::kInt64) {
    std::copy(splits.begin(), splits.end(), out->mutable_data<int64_t>());
    return OkStatus();
  }
  if (splits.back() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("a row split of ", splits.back(), " does not fit in int32");
  }
  std::copy(splits.begin(), splits.end(), out->mutable_data<int32_t>());
  return OkStatus();
}

TypeAttrDef SplitsType() { return {"Tsplits", kIndex, DType::kInt64}; }

}  // namespace penstock
