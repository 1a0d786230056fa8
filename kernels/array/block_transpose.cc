// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/block_transpose.h"

#include <cstring>
#include <utility>

namespace penstock {
namespace {

// Transposes a small square in vector registers: to[j][i] = from[i][j]. An N x N square takes
// log2(N) rounds, each of which interleaves row i with row i + N/2.
template <class U>
struct Square {
  typedef U Vector __attribute__((vector_size(16)));
  static constexpr int kSize = 16 / sizeof(U);

  template <int kFirst, int... i>
  static Vector Interleave(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (i / 2 + kFirst + (i % 2) * kSize)...);
  }

  static void Transpose(const char* from, int64_t from_stride, char* to, int64_t to_stride) {
    constexpr auto kLanes = std::make_integer_sequence<int, kSize>();
    Vector rows[kSize], next[kSize];
    // Unrolled, so that both arrays are kept in registers.
#pragma GCC unroll 16
    for (int i = 0; i < kSize; ++i) memcpy(&rows[i], from + i * from_stride, 16);
#pragma GCC unroll 4
    for (int round = 1; round < kSize; round *= 2) {
#pragma GCC unroll 16
      for (int i = 0; i < kSize / 2; ++i) {
        next[2 * i] = Interleave<0>(rows[i], rows[i + kSize / 2], kLanes);
        next[2 * i + 1] = Interleave<kSize / 2>(rows[i], rows[i + kSize / 2], kLanes);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kSize; ++i) rows[i] = next[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSize; ++i) memcpy(to + i * to_stride, &rows[i], 16);
  }
};

template <class U>
void TransposeScalars(const TransposedBlock& block, const char* from, char* to) {
  const auto move = [&](int64_t row, int64_t column) {
    memcpy(to + column * block.to_stride + row * sizeof(U),
           from + row * block.from_stride + column * sizeof(U), sizeof(U));
  };
  if (block.rows >= block.columns) {
    for (int64_t c = 0; c < block.columns; ++c) {
      for (int64_t r = 0; r < block.rows; ++r) move(r, c);
    }
  } else {
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t c = 0; c < block.columns; ++c) move(r, c);
    }
  }
}

// Transposes a tile whose sides are one cache line long, through a buffer. So each cache line of
// the source is read once, and each one of the destination is written once as a whole, even if the
// strides map all lines to the same few sets of the cache.
template <class U>
void TransposeTile(const TransposedBlock& block, const char* from, char* to) {
  constexpr int64_t kTile = kCacheLine / sizeof(U), kSize = Square<U>::kSize;
  alignas(kCacheLine) char tile[kTile][kCacheLine];
  // Prefetches the next tile, because the hardware prefetcher does not follow such long strides.
  // This makes transposes of 16 MiB and more 1.3 to 1.6 times as fast, and transposes within the
  // caches a tenth slower (transpose_benchmark.cc).
  for (int64_t i = 0; i < kTile; ++i) {
    __builtin_prefetch(from + (kTile + i) * block.from_stride);
    __builtin_prefetch(to + i * block.to_stride + kCacheLine, 1);
  }
  for (int64_t r = 0; r < kTile; r += kSize) {
    for (int64_t c = 0; c < kTile; c += kSize) {
      Square<U>::Transpose(from + r * block.from_stride + c * sizeof(U), block.from_stride,
                           &tile[c][r * sizeof(U)], kCacheLine);
    }
  }
  for (int64_t c = 0; c < kTile; ++c) memcpy(to + c * block.to_stride, tile[c], kCacheLine);
}

// Transposes the right or the bottom edge of a block, which complete tiles do not cover: in squares
// if `beside_tiles`, else one element at a time.
template <class U>
void TransposeRest(const TransposedBlock& block, const char* from, char* to, bool beside_tiles) {
  if (beside_tiles) {
    TransposeBlock<U>(block, from, to);
  } else {
    TransposeScalars<U>(block, from, to);
  }
}

}  // namespace

// Transposes tiles, or squares if the block is smaller than a tile, and then the edges that these
// do not cover.
template <class U>
void TransposeBlock(const TransposedBlock& block, const char* from, char* to) {
  constexpr int64_t kTile = kCacheLine / sizeof(U), kSize = Square<U>::kSize;
  const bool tiles = block.rows >= kTile && block.columns >= kTile;
  const int64_t step = tiles ? kTile : kSize;
  const int64_t rows = block.rows / step * step, columns = block.columns / step * step;
  for (int64_t c = 0; c < columns; c += step) {
    for (int64_t r = 0; r < rows; r += step) {
      const char* source = from + r * block.from_stride + c * sizeof(U);
      char* target = to + c * block.to_stride + r * sizeof(U);
      if (tiles) {
        TransposeTile<U>(block, source, target);
      } else {
        Square<U>::Transpose(source, block.from_stride, target, block.to_stride);
      }
    }
  }
  TransposedBlock right = block, bottom = block;
  right.columns = block.columns - columns;
  bottom.rows = block.rows - rows;
  bottom.columns = columns;
  if (right.columns > 0) {
    TransposeRest<U>(right, from + columns * sizeof(U), to + columns * block.to_stride, tiles);
  }
  if (bottom.rows > 0) {
    TransposeRest<U>(bottom, from + rows * block.from_stride, to + rows * sizeof(U), tiles);
  }
}

template void TransposeBlock<uint8_t>(const TransposedBlock&, const char*, char*);
template void TransposeBlock<uint16_t>(const TransposedBlock&, const char*, char*);
template void TransposeBlock<uint32_t>(const TransposedBlock&, const char*, char*);
template void TransposeBlock<uint64_t>(const TransposedBlock&, const char*, char*);

}  // namespace penstock
