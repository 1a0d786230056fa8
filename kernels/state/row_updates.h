// SPDX-License-Identifier: Apache-2.0
//
// Updates rows of a variable by index, on several threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// A tensor's shape as rows along dimension 0.
struct Rows {
  int64_t count = 0;
  int64_t length = 1;  // number of elements of each row

  // Returns the rows of a shape. InvalidArgument, which names `what`, for a scalar.
  static StatusOr<Rows> Of(const Shape& shape, string_view what) {
    if (shape.rank() == 0) {
      return InvalidArgument(what, " must be at least 1 dimensional, is a scalar");
    }
    Rows rows{.count = shape.dim(0)};
    for (const int64_t size : shape.dims().subspan(1)) rows.length *= size;
    return rows;
  }
};

// Calls fn with the elements of a tensor. REQUIRES: dtype int32 or int64.
template <class Fn>
void VisitIndices(const Tensor& indices, Fn fn) {
  if (indices.dtype() == DType::kInt32) {
    fn(indices.flat<int32_t>());
  } else {
    fn(indices.flat<int64_t>());
  }
}

// Calls update(k, rows[k]) for every k, and some time before it prefetch(rows[k]). Each row belongs
// to one thread, which applies its updates in order of k. So repeated indices are safe and the
// result does not depend on the number of threads. `cost_ns` is the cost of one update.
template <class Index, class Update, class Prefetch>
void ForEachRowUpdate(Scheduler& threads, absl::Span<const Index> rows, double cost_ns,
                      Update update, Prefetch prefetch) {
  const int64_t n = static_cast<int64_t>(rows.size());
  // The number of rows to prefetch ahead: the latency of memory, about 100 ns, divided by the time
  // of a small update.
  constexpr int64_t kPrefetchRows = 8;
  const auto part = [&](int64_t part, int64_t parts) {
    for (int64_t k = 0; k < n; ++k) {
      if (k + kPrefetchRows < n) prefetch(rows[k + kPrefetchRows]);
      if (parts == 1 || static_cast<uint64_t>(rows[k]) % parts == static_cast<uint64_t>(part)) {
        update(k, rows[k]);
      }
    }
  };
  // The least cost of all updates for which a second thread is used. For less, one thread finishes
  // before a second one has woken up.
  constexpr double kSerialNanosMax = 50'000;
  const int64_t parts = n * cost_ns < kSerialNanosMax ? 1 : threads.num_threads();
  if (parts == 1) return part(0, 1);
  threads.ParallelFor(parts, n * cost_ns / parts, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) part(i, parts);
  });
}

// Prefetches the first cache lines of a row; the hardware prefetches the rest once the row is read.
inline void PrefetchRow(const void* row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const char* const begin = static_cast<const char*>(row);
  for (int64_t at = 0; at < std::min<int64_t>(bytes, 4 * kLine); at += kLine) {
    __builtin_prefetch(begin + at, 1);
  }
}

}  // namespace penstock
