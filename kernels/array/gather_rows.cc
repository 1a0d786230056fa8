// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/gather_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

// The number of rows to prefetch ahead, and of cache lines of a row to prefetch: the hardware's
// prefetcher continues once a row is being read. Chosen with gather_benchmark.cc.
constexpr int64_t kPrefetchRows = 8;
constexpr int64_t kPrefetchLines = 4;
constexpr int64_t kLine = 64;

void Prefetch(const char* row, int64_t bytes) {
  const int64_t lines = std::min(kPrefetchLines, (bytes + kLine - 1) / kLine);
  for (int64_t i = 0; i < lines; ++i) __builtin_prefetch(row + i * kLine);
}

// Copies rows [begin, end) of one index list. If the row size is a compile-time constant, a copy is
// a few move instructions.
template <int64_t kBytes, class Index>
void CopyRange(const char* table, int64_t row_bytes, const Index* indices, int64_t begin,
               int64_t end, char* out) {
  const int64_t bytes = kBytes > 0 ? kBytes : row_bytes;
  const int64_t ahead_end = std::max(begin, end - kPrefetchRows);
  for (int64_t i = begin; i < ahead_end; ++i) {
    Prefetch(table + indices[i + kPrefetchRows] * bytes, bytes);
    memcpy(out + i * bytes, table + indices[i] * bytes, bytes);
  }
  for (int64_t i = ahead_end; i < end; ++i) {
    memcpy(out + i * bytes, table + indices[i] * bytes, bytes);
  }
}

template <class Index>
void CopyPlainRange(const char* table, int64_t row_bytes, const Index* indices, int64_t begin,
                    int64_t end, char* out) {
  switch (row_bytes) {
    case 4:
      return CopyRange<4>(table, row_bytes, indices, begin, end, out);
    case 8:
      return CopyRange<8>(table, row_bytes, indices, begin, end, out);
    case 16:
      return CopyRange<16>(table, row_bytes, indices, begin, end, out);
    case 64:
      return CopyRange<64>(table, row_bytes, indices, begin, end, out);
    default:
      return CopyRange<0>(table, row_bytes, indices, begin, end, out);
  }
}

template <class Index>
int64_t FirstOutOfRange(absl::Span<const Index> indices, int64_t limit) {
  using Unsigned = std::make_unsigned_t<Index>;
  // If the limit exceeds the range of the index type, only negative indices can be out of range.
  constexpr int64_t kLargest = std::numeric_limits<Index>::max();
  const Unsigned bound = limit > kLargest ? Unsigned{kLargest} + 1 : static_cast<Unsigned>(limit);
  const int64_t count = static_cast<int64_t>(indices.size());
  // The loop over a block has no branch, so that the compiler vectorises it.
  constexpr int64_t kBlock = 1024;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    bool bad = false;
    for (int64_t i = begin; i < end; ++i) bad |= static_cast<Unsigned>(indices[i]) >= bound;
    if (!bad) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (static_cast<Unsigned>(indices[i]) >= bound) return i;
    }
  }
  return -1;
}

template <class Index>
Status CheckIndicesAs(const Tensor& indices, int64_t limit, string_view name) {
  const int64_t at = FirstOutOfRange(indices.flat<Index>(), limit);
  if (at < 0) return OkStatus();
  return InvalidArgument(name, indices.rank() == 0 ? "" : "[", CoordinatesText(indices.shape(), at),
                         indices.rank() == 0 ? "" : "]", " = ", indices.flat<Index>()[at],
                         " is not in [0, ", limit, ")");
}

}  // namespace

template <class Index>
void GatherRows(DType dtype, const GatherPlan& plan, const void* table, const Index* indices,
                void* out, Scheduler& threads) {
  if (plan.count == 0) return;
  const int64_t row_bytes = plan.row_elements * SizeOf(dtype);
  const double cost_ns = 5 + row_bytes / 8.0;
  const auto copy = [&](int64_t slab, int64_t begin, int64_t end) {
    const int64_t batch = slab / plan.outer;
    const void* rows = ElementAt(table, dtype, slab * plan.rows * plan.row_elements);
    void* to = ElementAt(out, dtype, slab * plan.count * plan.row_elements);
    const Index* list = indices + batch * plan.count;
    if (IsPlain(dtype)) {
      CopyPlainRange(static_cast<const char*>(rows), row_bytes, list, begin, end,
                     static_cast<char*>(to));
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      CopyElements(dtype, ElementAt(rows, dtype, list[i] * plan.row_elements),
                   ElementAt(to, dtype, i * plan.row_elements), plan.row_elements);
    }
  };
  // The range covers the index lists of all slabs (a table's `outer` slices), one after the other.
  // A part that crosses the end of a slab is copied in several calls.
  threads.ParallelFor(plan.batches * plan.outer * plan.count, cost_ns,
                      [&](int64_t begin, int64_t end) {
                        while (begin < end) {
                          const int64_t slab = begin / plan.count, first = begin % plan.count;
                          const int64_t last = std::min(plan.count, first + end - begin);
                          copy(slab, first, last);
                          begin += last - first;
                        }
                      });
}

template void GatherRows<int32_t>(DType, const GatherPlan&, const void*, const int32_t*, void*,
                                  Scheduler&);
template void GatherRows<int64_t>(DType, const GatherPlan&, const void*, const int64_t*, void*,
                                  Scheduler&);

void GatherRows(DType dtype, const GatherPlan& plan, const void* table, const Tensor& indices,
                void* out, Scheduler& threads) {
  if (indices.dtype() == DType::kInt32) {
    GatherRows(dtype, plan, table, indices.data<int32_t>(), out, threads);
  } else {
    GatherRows(dtype, plan, table, indices.data<int64_t>(), out, threads);
  }
}

Status CheckIndices(const Tensor& indices, int64_t limit, string_view name) {
  if (indices.dtype() == DType::kInt32) return CheckIndicesAs<int32_t>(indices, limit, name);
  if (indices.dtype() == DType::kInt64) return CheckIndicesAs<int64_t>(indices, limit, name);
  return InvalidArgument(name, " must be int32 or int64, is ", Name(indices.dtype()));
}

std::string CoordinatesText(const Shape& shape, int64_t position) {
  Dims place(shape.rank());
  for (int i = shape.rank() - 1; i >= 0; --i) {
    place[i] = position % shape.dim(i);
    position /= shape.dim(i);
  }
  return absl::StrJoin(place, ",");
}

}  // namespace penstock
