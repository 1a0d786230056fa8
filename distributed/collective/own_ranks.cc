// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/own_ranks.h"

#include <cstring>
#include <vector>

#include "distributed/collective/merge.h"

namespace penstock::collective {
namespace {

Tensor Flat(const Tensor& tensor) { return tensor.Reshaped(Shape({tensor.num_elements()})); }

}  // namespace

StatusOr<Tensor> MergeInputs(const std::vector<CollectiveCall>& calls) {
  const CollectiveCall& first = calls[0];
  if (first.kind == CollectiveKind::kBroadcast) {
    for (const CollectiveCall& call : calls) {
      if (call.is_source) return Flat(call.input);
    }
    return Tensor();
  }
  if (calls.size() == 1) return Flat(first.input);
  const int64_t elements = first.input.num_elements(), count = static_cast<int64_t>(calls.size());
  const bool gathers = first.kind == CollectiveKind::kAllGather;
  ASSIGN_OR_RETURN(Tensor merged, Tensor::Make(CpuAllocator(), first.dtype,
                                               Shape({gathers ? elements * count : elements})));
  if (!gathers) RETURN_IF_ERROR(CheckMergeable(first.dtype));
  char* const to = static_cast<char*>(merged.mutable_raw_data());
  for (int64_t i = 0; i < count && elements > 0; ++i) {
    const void* const own = calls[i].input.raw_data();
    if (gathers || i == 0) {
      const size_t bytes = first.input.bytes();
      std::memcpy(to + (gathers ? i * bytes : 0), own, bytes);
    } else {
      Merge(first.merge, first.dtype, elements, to, own, to);
    }
  }
  return merged;
}

int64_t ResultElements(const std::vector<CollectiveCall>& calls, int64_t group_size) {
  const int64_t elements = calls[0].shape.num_elements();
  switch (calls[0].kind) {
    case CollectiveKind::kAllGather:
      return elements * group_size;
    case CollectiveKind::kReduceScatter:
      return elements / group_size * static_cast<int64_t>(calls.size());
    default:
      return elements;
  }
}

Tensor ResultOf(const CollectiveCall& call, int64_t position, int64_t group_size,
                const Tensor& result) {
  Dims dims(call.shape.dims().begin(), call.shape.dims().end());
  if (call.kind == CollectiveKind::kAllGather) dims[0] *= group_size;
  if (call.kind != CollectiveKind::kReduceScatter) return result.Reshaped(Shape(dims));
  dims[0] /= group_size;
  const Shape shape(dims);
  const int64_t at = position * shape.num_elements();
  return result.Slice(at, at + shape.num_elements()).Reshaped(shape);
}

}  // namespace penstock::collective
