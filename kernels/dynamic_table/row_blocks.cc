// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/row_blocks.h"

#include <iterator>
#include <limits>
#include <utility>

namespace penstock {

Status RowBlocks::Reserve(Allocator& allocator, int64_t count) {
  while (std::ssize(blocks_) * block_rows() - end_ + num_free_ < count) {
    if ((std::ssize(blocks_) + 1) * block_rows() > std::numeric_limits<int32_t>::max()) {
      return ResourceExhausted("a shard of a table cannot have more than 2^31 rows");
    }
    ASSIGN_OR_RETURN(Tensor block,
                     Tensor::Make(allocator, DType::kUint8, {block_rows() * stride_}));
    auto* const rows = static_cast<char*>(block.mutable_raw_data());
    memory_.push_back(std::move(block));
    blocks_.push_back(rows);
  }
  return OkStatus();
}

int32_t RowBlocks::Take() {
  if (free_ < 0) return end_++;
  const int32_t row = free_;
  free_ = header(row).older;
  --num_free_;
  return row;
}

void RowBlocks::Release(int32_t row) {
  RowHeader& released = header(row);
  released.updates = -1;
  released.older = free_;
  free_ = row;
  ++num_free_;
}

void RowBlocks::Clear() {
  blocks_.clear();
  memory_.clear();
  end_ = 0;
  free_ = -1;
  num_free_ = 0;
}

}  // namespace penstock
