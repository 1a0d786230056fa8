// SPDX-License-Identifier: Apache-2.0
//
// The levels of a ragged tensor, as inputs of RaggedTensorToTensor. The first input may be the
// number of rows (FIRST_DIM_SIZE). The items of each level are assigned to rows by row splits
// (ROW_SPLITS), or by the row of each item (VALUE_ROWIDS).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op/kernel.h"

namespace penstock {

// Checks the types. InvalidArgument unless there is a type for each of `count` tensors, and only
// the first type, if any, gives the number of rows.
Status CheckPartitionTypes(const std::vector<std::string>& types, int count);
// Returns the number of levels that the types describe.
int RaggedRank(const std::vector<std::string>& types);

struct RowPartition {
  bool by_rows;  // true: `numbers` holds the row of each item; false: it holds the row splits
  Dims numbers;  // ascending

  int64_t items() const;
  // Returns the length of the longest row.
  int64_t Width() const;
  // Calls visit(item, row, position in the row) for each item, in order.
  template <class Visit>
  void ForEachItem(const Visit& visit) const {
    if (by_rows) {
      int64_t place = 0;
      for (size_t i = 0; i < numbers.size(); ++i) {
        place = i > 0 && numbers[i] == numbers[i - 1] ? place + 1 : 0;
        visit(static_cast<int64_t>(i), numbers[i], place);
      }
      return;
    }
    for (size_t row = 0; row + 1 < numbers.size(); ++row) {
      for (int64_t item = numbers[row]; item < numbers[row + 1]; ++item) {
        visit(item, static_cast<int64_t>(row), item - numbers[row]);
      }
    }
  }
};

struct RowPartitions {
  int64_t rows = 0;  // number of rows of the outermost level
  std::vector<RowPartition> levels;

  // Reads the inputs from `first` on, of types `types`. The last level has `values` items.
  // InvalidArgument if the inputs do not fit each other.
  static StatusOr<RowPartitions> FromInputs(const KernelContext& ctx, int first,
                                            const std::vector<std::string>& types, int64_t values);
};

}  // namespace penstock
