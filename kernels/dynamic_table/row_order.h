// SPDX-License-Identifier: Apache-2.0
//
// RowOrder: the order of the last updates of rows in one RowBlocks: a linked list through their
// headers. Not thread-safe.
#pragma once

#include <cstdint>

#include "kernels/dynamic_table/row_blocks.h"

namespace penstock {

class RowOrder {
 public:
  // Return the row that was updated last, and the one that was updated least recently; -1 if there
  // are no rows.
  int32_t newest() const { return newest_; }
  int32_t oldest() const { return oldest_; }

  void AddNewest(RowBlocks& rows, int32_t row) {
    RowHeader& header = rows.header(row);
    header.newer = -1;
    header.older = newest_;
    (newest_ >= 0 ? rows.header(newest_).newer : oldest_) = row;
    newest_ = row;
  }
  // Removes a row from the order. REQUIRES: the row was added.
  void Remove(RowBlocks& rows, int32_t row) {
    const RowHeader& header = rows.header(row);
    (header.newer >= 0 ? rows.header(header.newer).older : newest_) = header.older;
    (header.older >= 0 ? rows.header(header.older).newer : oldest_) = header.newer;
  }
  void Clear() { newest_ = oldest_ = -1; }

 private:
  int32_t newest_ = -1, oldest_ = -1;
};

}  // namespace penstock
