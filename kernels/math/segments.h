// SPDX-License-Identifier: Apache-2.0
//
// The engine of the segment ops: reduces the rows of a tensor that belong to the same segment. Only
// the inner loop is a template; a SegmentFold points to one instance of it.
//
// Each thread owns a range of segments and reduces their rows in order: no two threads write to the
// same segment, and results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "core/op/gradient.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/float16_blocks.h"
#include "kernels/engine/functor.h"
#include "kernels/math/add.h"

namespace penstock {

struct SegmentRows {
  const void* data = nullptr;
  int64_t row = 1;                     // elements of one row
  absl::Span<const int64_t> segments;  // the segment of row i; negative: left out
  absl::Span<const int64_t> rows;      // the row of `data` used as row i; if empty, row i
  absl::Span<const double> weights;    // factor of row i (sums of floats only)
  // If set, a segment without rows gets zero (one in products), as in the ops on sorted ids. Else
  // it gets the identity of the reduction.
  bool zero_if_empty = false;
};

// Computes the rows of segments [first, last) of y.
using SegmentFold = void (*)(const SegmentRows& rows, int64_t first, int64_t last, void* y);

// Computes all `count` segments of y.
void FoldSegments(Scheduler& threads, SegmentFold fold, const SegmentRows& rows, int64_t count,
                  void* y);

// Allocates output 0, with `count` rows like those of `data`, and folds the segments into it.
// The caller fills in all members of `rows` except `data` and `row`.
Status FoldIntoOutput(KernelContext& ctx, SegmentFold fold, const Tensor& data, SegmentRows rows,
                      int64_t count);
// Returns the number of segments of sorted ids: the largest id + 1.
inline int64_t CountOf(absl::Span<const int64_t> segments) {
  return segments.empty() ? 0 : segments.back() + 1;
}

// Returns the values of an int32 or int64 tensor.
std::vector<int64_t> AsInt64(const Tensor& ints);
// Checks that segment ids are not negative and never decrease. InvalidArgument has TensorFlow's
// text.
Status CheckSorted(absl::Span<const int64_t> segments);
// InvalidArgument, with TensorFlow's text, unless all indices are in [0, limit).
Status CheckRows(absl::Span<const int64_t> rows, int64_t limit);

// The segments and the output of the Unsorted ops, all checked.
struct UnsortedSegments {
  int64_t count = 0, row = 1, ids = 0;
  Shape output;
  static StatusOr<UnsortedSegments> Make(const Shape& data, const Shape& ids,
                                         const Tensor& num_segments);
};
Status UnsortedSegmentShape(ShapeScope& s);
// Returns, for each row of input 0, the row of `per_segment` for its segment; zeros for rows that
// were left out.
Output RowsOfSegments(const GradientScope& g, Output per_segment);

// Reductions: Add adds one element, Finish ends a result of `count` rows.
struct SegmentSumFold {
  static constexpr bool kIdentityIfEmpty = true;
  template <class T>
  static T Identity() {
    return T(0);
  }
  template <class L>
  static L Add(L a, L x) {
    return AddFn()(a, x);
  }
  template <class L>
  static L Finish(L a, int64_t count) {
    return a;
  }
};

struct SegmentMeanFold : SegmentSumFold {
  template <class L>
  static L Finish(L a, int64_t count) {
    if constexpr (std::is_same_v<L, uint64_t>) {
      return a / static_cast<uint64_t>(count);
    } else if constexpr (std::is_integral_v<L>) {
      return static_cast<L>(static_cast<int64_t>(a) / count);
    } else {
      return a / static_cast<Real<L>>(count);
    }
  }
};

struct SegmentSqrtNFold : SegmentSumFold {
  template <class L>
  static L Finish(L a, int64_t count) {
    return a / std::sqrt(static_cast<L>(count));
  }
};

struct SegmentProdFold : SegmentSumFold {
  template <class T>
  static T Identity() {
    return T(1);
  }
  template <class L>
  static L Add(L a, L x) {
    if constexpr (std::is_integral_v<L>) {
      return static_cast<L>(static_cast<Wrapping<L>>(a) * static_cast<Wrapping<L>>(x));
    } else {
      return a * x;
    }
  }
};

// If an element is NaN, the result is NaN.
struct SegmentMinFold : SegmentSumFold {
  static constexpr bool kIdentityIfEmpty = false;
  template <class T>
  static T Identity() {
    return std::numeric_limits<T>::max();
  }
  template <class L>
  static L Add(L a, L x) {
    return a < x || a != a ? a : x;
  }
};

struct SegmentMaxFold : SegmentMinFold {
  template <class T>
  static T Identity() {
    return std::numeric_limits<T>::lowest();
  }
  template <class L>
  static L Add(L a, L x) {
    return a > x || a != a ? a : x;
  }
};

// Computes the rows of segments [first, last) with the reduction F. 16-bit floats are accumulated
// in float.
template <class F, class T>
void FoldSegmentRange(const SegmentRows& rows, int64_t first, int64_t last, void* out) {
  using L = LoopType<T>;
  const int64_t row = rows.row, n = last - first;
  T* y = static_cast<T*>(out) + first * row;
  std::vector<L> wide(kIsHalf<T> ? n * row : 0);
  L* sums;
  if constexpr (kIsHalf<T>) {
    sums = wide.data();
  } else {
    sums = y;
  }
  std::fill_n(sums, n * row, static_cast<L>(F::template Identity<T>()));
  std::vector<int64_t> counts(n);
  for (size_t i = 0; i < rows.segments.size(); ++i) {
    const int64_t s = rows.segments[i] - first;
    if (s < 0 || s >= n) continue;
    const T* x = static_cast<const T*>(rows.data) + (rows.rows.empty() ? i : rows.rows[i]) * row;
    L* to = sums + s * row;
    ++counts[s];
    if constexpr (std::is_floating_point_v<L>) {
      if (!rows.weights.empty()) {
        const L weight = static_cast<L>(rows.weights[i]);
        for (int64_t j = 0; j < row; ++j) to[j] = F::Add(to[j], weight * static_cast<L>(x[j]));
        continue;
      }
    }
    for (int64_t j = 0; j < row; ++j) to[j] = F::Add(to[j], static_cast<L>(x[j]));
  }
  for (int64_t s = 0; s < n; ++s) {
    L* to = sums + s * row;
    if (counts[s] == 0 && rows.zero_if_empty && !F::kIdentityIfEmpty) std::fill_n(to, row, L(0));
    if (counts[s] <= 1) continue;
    for (int64_t j = 0; j < row; ++j) to[j] = F::Finish(to[j], counts[s]);
  }
  if constexpr (kIsHalf<T>) FloatToFloat16(kDTypeOf<T>, sums, y, n * row);
}

}  // namespace penstock
