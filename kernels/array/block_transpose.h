// SPDX-License-Identifier: Apache-2.0
//
// TransposeBlock: transposes one block of memory, cache line by cache line. CopyStrided uses it
// when the source and the destination are contiguous along different dimensions.
#pragma once

#include <cstdint>

namespace penstock {

inline constexpr int64_t kCacheLine = 64;

// The block to transpose. In the source, it has `rows` rows of `columns` adjacent elements; the
// rows are `from_stride` bytes apart. The rows become columns of the destination.
struct TransposedBlock {
  int64_t rows, columns;
  int64_t from_stride;  // bytes between rows of the source
  int64_t to_stride;    // bytes between rows of the destination (columns of the source)
};

// Transposes the block. U is an unsigned integer of the elements' size: uint8_t, uint16_t, uint32_t
// or uint64_t. `from` and `to` need no alignment.
template <class U>
void TransposeBlock(const TransposedBlock& block, const char* from, char* to);

}  // namespace penstock
