// SPDX-License-Identifier: Apache-2.0
//
// Copies rows of a table by index: the loops of Gather, GatherNd and similar ops, and the check of
// their indices.
//
// The loops are bound by memory latency, so they prefetch rows a few indices ahead.
#pragma once

#include <cstdint>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Describes a gather: `batches` independent tables [outer, rows, row_elements] and index lists of
// `count` indices each give a result [batches, outer, count, row_elements].
struct GatherPlan {
  int64_t batches = 1;
  int64_t outer = 1;
  int64_t rows = 0;
  int64_t row_elements = 1;
  int64_t count = 0;
};

// Copies the rows that `indices` selects from `table` to `out`. REQUIRES: all indices are in [0,
// plan.rows). Index is int32_t or int64_t.
template <class Index>
void GatherRows(DType dtype, const GatherPlan& plan, const void* table, const Index* indices,
                void* out, Scheduler& threads);

// Checks an int32 or int64 tensor. InvalidArgument if an index is not in [0, limit); names the
// first such index by its position, "indices[1,2] = 7 is not in [0, 5)".
Status CheckIndices(const Tensor& indices, int64_t limit, string_view name);

// Returns the coordinates, such as "1,2", of the element with the flat index `position` in a tensor
// of shape `shape`.
std::string CoordinatesText(const Shape& shape, int64_t position);

// Calls GatherRows for the type of the tensor `indices`.
void GatherRows(DType dtype, const GatherPlan& plan, const void* table, const Tensor& indices,
                void* out, Scheduler& threads);

}  // namespace penstock
