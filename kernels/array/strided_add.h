// SPDX-License-Identifier: Apache-2.0
//
// AddTo: how elements that meet on one place add up; AddStrided: to[...] += from[...] over a box,
// as CopyStrided walks it, except that several source elements may meet (stride 0 in the
// destination). The few ops need it that undo a repetition: MirrorPadGrad, TileGrad.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/array/strided_copy.h"

namespace penstock {

// Numbers by sum, integers wrapping around; bools by or; strings one after the other.
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

// Single-threaded: places of the destination meet.
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
