// SPDX-License-Identifier: Apache-2.0
//
// AddTo: adds one element to another; AddStrided: to[...] += from[...] over the box of a
// StridedCopy, in which several source elements may be added to one destination element (stride 0
// in the destination). The gradients of ops that repeat elements use it: MirrorPadGrad, TileGrad.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/array/strided_copy.h"

namespace penstock {

// Adds numbers (integers wrap around), ors bools, concatenates strings.
template <class T>
void AddTo(T& place, const T& update) {
  if constexpr (std::is_same_v<T, bool>) {
    place = place || update;
  } else if constexpr (std::is_integral_v<T>) {
    place = static_cast<T>(static_cast<uint64_t>(place) + static_cast<uint64_t>(update));
  } else {
    place += update;
  }
}

// Adds the elements of the box, from dimension `depth` on. Single-threaded, because several
// additions may go to one destination element.
template <class T>
void AddStrided(const StridedCopy& copy, const T* from, T* to, size_t depth = 0) {
  if (depth == copy.dims.size()) {
    return AddTo(*to, *from);
  }
  const StridedCopy::Dim& dim = copy.dims[depth];
  for (int64_t i = 0; i < dim.count; ++i) {
    AddStrided(copy, from + i * dim.from, to + i * dim.to, depth + 1);
  }
}

}  // namespace penstock
