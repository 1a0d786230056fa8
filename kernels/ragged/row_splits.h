// SPDX-License-Identifier: Apache-2.0
//
// Row splits, by which a ragged tensor knows its rows: row i is items [splits[i], splits[i + 1]) of
// what they split, which are the rows of the next splits, or of the values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/op_def.h"

namespace penstock {

using RowSplits = std::vector<int64_t>;

// Inputs [0, count), outermost first, of a ragged tensor with `values` values. InvalidArgument
// unless they ascend, between 0 and the number of items; `all`: from 0 to that number.
StatusOr<std::vector<RowSplits>> SplitsInputs(const KernelContext& ctx, int count, int64_t values,
                                              bool all);

// An int32 or int64 type for splits, as every op on ragged tensors has it.
TypeAttrDef SplitsType();

// Output i: splits. InvalidArgument where they do not fit in its type.
Status WriteSplits(KernelContext& ctx, int i, const RowSplits& splits);

}  // namespace penstock
