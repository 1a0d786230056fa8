// SPDX-License-Identifier: Apache-2.0
//
// CopyStrided: the one loop nest behind the ops that rearrange elements (Transpose, Slice, Concat,
// Tile, Pad, Reverse, SpaceToBatch, ...). An op says for each dimension how far apart neighbours
// lie in the source and in the destination; what remains, from memcpy of long rows to blocked
// transposition, is chosen here.
#pragma once

#include <cstdint>

#include "core/base/scheduler.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace penstock {

// A box of elements. Strides count elements. In the source, 0 repeats and a negative stride walks
// backwards; in the destination no two elements may fall on the same place.
struct StridedCopy {
  struct Dim {
    int64_t count;
    int64_t from;  // stride in the source
    int64_t to;    // stride in the destination
  };
  absl::InlinedVector<Dim, 8> dims;  // in any order

  void Add(int64_t count, int64_t from, int64_t to) { dims.push_back({count, from, to}); }
};

// `from` and `to` are the addresses of the box's first element on either side; the two boxes must
// not overlap. Nothing is read or written where a count is 0. REQUIRES counts >= 0 and a box that
// lies within both buffers. Large boxes are shared out over `threads`.
void CopyStrided(DType dtype, const StridedCopy& copy, const void* from, void* to,
                 Scheduler& threads);

// Strides, in elements, of a dense tensor with these dimensions, last dimension 1.
Dims DenseStrides(absl::Span<const int64_t> dims);

}  // namespace penstock
