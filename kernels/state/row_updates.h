// SPDX-License-Identifier: Apache-2.0
//
// Updates of rows of a variable by index, shared out among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// A shape seen as rows along dimension 0.
struct Rows {
  int64_t count = 0;
  int64_t length = 1;  // elements of each

  // InvalidArgument for a scalar, which `what` names.
  static StatusOr<Rows> Of(const Shape& shape, string_view what) {
    if (shape.rank() == 0) {
      return InvalidArgument(what, " must be at least 1 dimensional, is a scalar");
    }
    Rows rows{.count = shape.dim(0)};
    for (const int64_t size : shape.dims().subspan(1)) rows.length *= size;
    return rows;
  }
};

// Calls fn with the elements of an int32 or int64 tensor. REQUIRES one of the two.
template <class Fn>
void VisitIndices(const Tensor& indices, Fn fn) {
  if (indices.dtype() == DType::kInt32) {
    fn(indices.flat<int32_t>());
  } else {
    fn(indices.flat<int64_t>());
  }
}

// Calls update(k, rows[k]) for every k, and before that prefetch(row). Updates of one row happen in
// order of k, as if all did: the rows, not the updates, are shared out among the threads, so that
// repeated indices are safe and the result does not depend on the number of threads. `cost_ns` is
// that of one update.
template <class Index, class Update, class Prefetch>
void ForEachRowUpdate(Scheduler& threads, absl::Span<const Index> rows, double cost_ns,
                      Update update, Prefetch prefetch) {
  const int64_t n = static_cast<int64_t>(rows.size());
  // Rows to look ahead: the latency of memory, about 100 ns, over the cost of a small update.
  constexpr int64_t kAhead = 8;
  const auto part = [&](int64_t part, int64_t parts) {
    for (int64_t k = 0; k < n; ++k) {
      if (k + kAhead < n) prefetch(rows[k + kAhead]);
      if (parts == 1 || static_cast<uint64_t>(rows[k]) % parts == static_cast<uint64_t>(part)) {
        update(k, rows[k]);
      }
    }
  };
  // Below this one thread is done before a second has woken up.
  constexpr double kSerialNanosMax = 50'000;
  const int64_t parts = n * cost_ns < kSerialNanosMax ? 1 : threads.num_threads();
  if (parts == 1) return part(0, 1);
  threads.ParallelFor(parts, n * cost_ns / parts, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) part(i, parts);
  });
}

// Asks for the first bytes of a row; the hardware follows by itself once the row is being read.
inline void PrefetchRow(const void* row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const char* const begin = static_cast<const char*>(row);
  for (int64_t at = 0; at < std::min<int64_t>(bytes, 4 * kLine); at += kLine) {
    __builtin_prefetch(begin + at, 1);
  }
}

}  // namespace penstock
