// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/partition.h"

#include <algorithm>

#include "kernels/array/arguments.h"

namespace penstock {
namespace {

constexpr char kFirstDimSize[] = "FIRST_DIM_SIZE", kValueRowIds[] = "VALUE_ROWIDS",
               kRowSplits[] = "ROW_SPLITS";

// Checks a partition. InvalidArgument unless `partition` describes `rows` rows.
Status CheckPartition(const RowPartition& partition, int64_t rows) {
  const Dims& numbers = partition.numbers;
  if (!std::is_sorted(numbers.begin(), numbers.end())) {
    return InvalidArgument("Invalid row split size: row splits and row ids must be sorted");
  }
  if (partition.by_rows) {
    if (numbers.empty() || (numbers.front() >= 0 && numbers.back() < rows)) return OkStatus();
    return InvalidArgument("value_rowids must be in [0, ", rows, "), go from ", numbers.front(),
                           " to ", numbers.back());
  }
  if (numbers.empty() || numbers.front() != 0) {
    return InvalidArgument("Invalid row split size: row splits must begin with 0");
  }
  if (static_cast<int64_t>(numbers.size()) == rows + 1) return OkStatus();
  return InvalidArgument("row splits must have ", rows, " + 1 elements, have ", numbers.size());
}

}  // namespace

Status CheckPartitionTypes(const std::vector<std::string>& types, int count) {
  if (static_cast<int>(types.size()) != count || types.empty()) {
    return InvalidArgument("there are ", types.size(), " row_partition_types for ", count,
                           " row_partition_tensors");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == kRowSplits) continue;
    if (types[i] != kFirstDimSize && types[i] != kValueRowIds) {
      return InvalidArgument("Unknown string for partition info type: ", types[i]);
    }
    if ((types[i] == kFirstDimSize) != (i == 0)) {
      return InvalidArgument("Cannot handle ", types[i], " as row_partition_types[", i, "]");
    }
  }
  return OkStatus();
}

int RaggedRank(const std::vector<std::string>& types) {
  return static_cast<int>(types.size()) - (types[0] == kFirstDimSize ? 1 : 0);
}

int64_t RowPartition::items() const {
  return by_rows ? static_cast<int64_t>(numbers.size()) : numbers.back();
}

int64_t RowPartition::Width() const {
  int64_t width = 0;
  if (by_rows) {
    ForEachItem([&](int64_t, int64_t, int64_t place) { width = std::max(width, place + 1); });
  } else {
    for (size_t i = 1; i < numbers.size(); ++i) {
      width = std::max(width, numbers[i] - numbers[i - 1]);
    }
  }
  return width;
}

StatusOr<RowPartitions> RowPartitions::FromInputs(const KernelContext& ctx, int first,
                                                  const std::vector<std::string>& types,
                                                  int64_t values) {
  RowPartitions partitions;
  int64_t items = -1;  // number of items of the previous level
  for (size_t i = 0; i < types.size(); ++i) {
    const Tensor& input = ctx.input(first + static_cast<int>(i));
    if (types[i] == kFirstDimSize) {
      ASSIGN_OR_RETURN(items, IntScalar(input, "the size of the first dimension"));
      if (items < 0) return InvalidArgument("the size of the first dimension is ", items);
      partitions.rows = items;
      continue;
    }
    RowPartition level{.by_rows = types[i] == kValueRowIds};
    ASSIGN_OR_RETURN(level.numbers, IntVector(input, "row partitions"));
    if (i == 0) items = partitions.rows = static_cast<int64_t>(level.numbers.size()) - 1;
    RETURN_IF_ERROR(CheckPartition(level, items));
    items = level.items();
    partitions.levels.push_back(std::move(level));
  }
  if (items == values) return partitions;
  return InvalidArgument("the row partitions are of ", items, " values, there are ", values);
}

}  // namespace penstock
