// SPDX-License-Identifier: Apache-2.0
//
// TransposeBlock: the transposition of one block of memory, by cache lines; what CopyStrided comes
// down to where source and destination run along different dimensions.
#pragma once

#include <cstdint>

namespace penstock {

inline constexpr int64_t kCacheLine = 64;

// One block of a transposition: `rows` of the source, `row_stride` apart, of `columns` adjacent
// elements each, become columns of the destination.
struct TransposedBlock {
  int64_t rows, columns;
  int64_t from_stride;  // between rows of the source
  int64_t to_stride;    // between rows of the destination, that is columns of the source
};

// U is an unsigned integer of the elements' size: uint8_t, uint16_t, uint32_t or uint64_t. `from`
// and `to` need no alignment.
template <class U>
void TransposeBlock(const TransposedBlock& block, const char* from, char* to);

}  // namespace penstock
