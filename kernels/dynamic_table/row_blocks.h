// SPDX-License-Identifier: Apache-2.0
//
// RowBlocks: the rows of one shard of a table, in blocks of up to 256 rows and 256 KiB (a larger
// row has a block of its own). A row is a header, the values, and the optimizer's slots of these
// values, one after the other. Rows are identified by numbers and never move; Take reuses released
// rows. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Precedes the values of a row.
struct alignas(32) RowHeader {
  int64_t key;
  int64_t step;          // step of the last update
  int32_t updates;       // number of updates, up to 2^31 - 1; -1 if the row is free
  int32_t newer, older;  // neighbours in the order of the last updates, or -1
  int32_t epoch;         // epoch of the last change (TableEpochs)
};

class RowBlocks {
 public:
  // `floats`: the number of floats in a row, including its slots.
  explicit RowBlocks(int64_t floats)
      : stride_(StrideOf(floats)), block_bits_(BlockBitsOf(stride_)) {}

  static int64_t StrideOf(int64_t floats) {
    constexpr auto kAlign = static_cast<int64_t>(sizeof(RowHeader));
    const auto bytes = static_cast<int64_t>(sizeof(float)) * floats;
    return kAlign + (bytes + kAlign - 1) / kAlign * kAlign;
  }

  RowHeader& header(int32_t row) { return *static_cast<RowHeader*>(static_cast<void*>(At(row))); }
  const RowHeader& header(int32_t row) const {
    return *static_cast<const RowHeader*>(static_cast<const void*>(At(row)));
  }
  float* values(int32_t row) {
    return static_cast<float*>(static_cast<void*>(At(row) + sizeof(RowHeader)));
  }
  const float* values(int32_t row) const {
    return static_cast<const float*>(static_cast<const void*>(At(row) + sizeof(RowHeader)));
  }
  // Prefetches the first `bytes` bytes of the row, at most 1 KiB, because the hardware prefetches
  // the rest.
  void Prefetch(int32_t row, int64_t bytes) const {
    constexpr int64_t kLine = 64, kBytesMax = 1024;
    for (int64_t i = 0; i < std::min(bytes, kBytesMax); i += kLine) __builtin_prefetch(At(row) + i);
  }

  // Makes room for `count` more rows. ResourceExhausted if there is no memory; existing rows are
  // unchanged.
  Status Reserve(Allocator& allocator, int64_t count);
  // Returns a free row, whose header and values the caller fills in. REQUIRES: there is room for it
  // (Reserve).
  int32_t Take();
  void Release(int32_t row);
  // Releases all rows, and frees the memory.
  void Clear();
  // Returns a number that is greater than those of all rows in use. Rows with smaller numbers may
  // also be free (RowHeader::updates).
  int32_t end() const { return end_; }

 private:
  static int BlockBitsOf(int64_t stride) {
    constexpr int kBitsMax = 8;
    constexpr int64_t kBytesMax = 256 << 10;
    int bits = kBitsMax;
    while (bits > 0 && stride << bits > kBytesMax) --bits;
    return bits;
  }
  int32_t block_rows() const { return 1 << block_bits_; }

  char* At(int32_t row) const {
    return blocks_[row >> block_bits_] + (row & (block_rows() - 1)) * stride_;
  }

  const int64_t stride_;  // bytes
  const int block_bits_;
  std::vector<char*> blocks_;
  std::vector<Tensor> memory_;
  int32_t end_ = 0;
  int32_t free_ = -1;  // the row released last; RowHeader::older links to the next free row
  int64_t num_free_ = 0;
};

}  // namespace penstock
