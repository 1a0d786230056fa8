// SPDX-License-Identifier: Apache-2.0
//
// AddStrided: to[...] += from[...] over a box, as CopyStrided walks it, except that several source
// elements may meet on one place of the destination (stride 0 there). The few ops need it that
// undo a repetition: MirrorPadGrad, TileGrad.
#pragma once

#include "core/base/check.h"
#include "core/tensor/tensor.h"
#include "kernels/array/strided_copy.h"

namespace penstock {

// Single-threaded: places of the destination meet.
template <class T>
void AddStrided(const StridedCopy& copy, const T* from, T* to, size_t depth = 0) {
  if (depth == copy.dims.size()) {
    *to = static_cast<T>(*to + *from);
    return;
  }
  const StridedCopy::Dim& dim = copy.dims[depth];
  for (int64_t i = 0; i < dim.count; ++i) {
    AddStrided(copy, from + i * dim.from, to + i * dim.to, depth + 1);
  }
}

}  // namespace penstock
