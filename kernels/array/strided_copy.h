// SPDX-License-Identifier: Apache-2.0
//
// CopyStrided: the loop nest of the ops that rearrange elements (Transpose, Slice, Concat, Tile,
// Pad, Reverse, SpaceToBatch, ...). An op gives the strides of each dimension in the source and in
// the destination. CopyStrided then chooses the fastest loops, from memcpy of long rows to blocked
// transposition.
#pragma once

#include <cstdint>

#include "core/base/scheduler.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace penstock {

// A box of elements. Strides count elements. In the source, stride 0 repeats an element and a
// negative stride walks backwards; in the destination no two elements may have the same address.
struct StridedCopy {
  struct Dim {
    int64_t count;
    int64_t from;  // stride in the source
    int64_t to;    // stride in the destination
  };
  absl::InlinedVector<Dim, 8> dims;  // in any order

  void Add(int64_t count, int64_t from, int64_t to) { dims.push_back({count, from, to}); }
};

// Copies the box. `from` and `to` are the addresses of its first element in the source and in the
// destination, which must not overlap. Reads and writes nothing if a count is 0. REQUIRES: all
// counts are >= 0, and the box lies within both buffers. Large boxes are split over `threads`.
void CopyStrided(DType dtype, const StridedCopy& copy, const void* from, void* to,
                 Scheduler& threads);

// Returns the strides, in elements, of a dense tensor with these dimensions; the last stride is 1.
Dims DenseStrides(absl::Span<const int64_t> dims);

}  // namespace penstock
