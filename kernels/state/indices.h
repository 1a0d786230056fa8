// SPDX-License-Identifier: Apache-2.0
//
// Row numbers that an op is given: int32 or int64 tensors, checked as a whole before anything is
// read or written by them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Calls fn(absl::Span<const I>) with I = int32_t or int64_t; InvalidArgument for other types.
template <class Fn>
Status VisitIndices(const Tensor& indices, Fn fn) {
  if (indices.dtype() == DType::kInt32) return fn(indices.flat<int32_t>());
  if (indices.dtype() == DType::kInt64) return fn(indices.flat<int64_t>());
  return InvalidArgument("indices must be int32 or int64, are ", Name(indices.dtype()));
}

// InvalidArgument naming the first index that is not in [0, limit), and where it stands.
Status CheckIndices(const Tensor& indices, int64_t limit);

// How many rows, and how long each is, where `shape` is seen as rows along dimension 0.
struct Rows {
  int64_t count = 0;
  int64_t length = 0;  // elements
};
// InvalidArgument for a scalar. `what` names it.
StatusOr<Rows> RowsOf(const Shape& shape, string_view what);
// The shape of one row.
Shape RowShape(const Shape& shape);

// Calls update(k, indices[k]) for every k. Updates of one row happen in order of k, as if all did:
// the rows, not the updates, are shared out among the threads, so that repeated indices are safe
// and the result does not depend on the number of threads. REQUIRES checked indices.
template <class I, class Fn>
void ForEachRowUpdate(ThreadPool& threads, absl::Span<const I> indices, double cost_ns, Fn update) {
  const int64_t n = static_cast<int64_t>(indices.size());
  // Below this many nanoseconds one thread is done before a second has woken up.
  constexpr double kSerialNanosMax = 50'000;
  const int64_t parts = n * cost_ns < kSerialNanosMax ? 1 : threads.num_threads();
  if (parts == 1) {
    for (int64_t k = 0; k < n; ++k) update(k, indices[k]);
    return;
  }
  threads.ParallelFor(parts, n * cost_ns / parts, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t k = 0; k < n; ++k) {
        if (static_cast<uint64_t>(indices[k]) % parts == static_cast<uint64_t>(part)) {
          update(k, indices[k]);
        }
      }
    }
  });
}

}  // namespace penstock
