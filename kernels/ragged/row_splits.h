// SPDX-License-Identifier: Apache-2.0
//
// RowSplits: the rows of a ragged tensor. Row i consists of the items [splits[i], splits[i + 1]).
// The items are the rows of the next, inner splits, or the values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/op_def.h"

namespace penstock {

using RowSplits = std::vector<int64_t>;

// Returns the inputs [0, count), outermost first, as the splits of a ragged tensor with `values`
// values. InvalidArgument unless each input ascends, and lies between 0 and the number of its
// items. If `all`, it must also begin with 0 and end with that number.
StatusOr<std::vector<RowSplits>> SplitsInputs(const KernelContext& ctx, int count, int64_t values,
                                              bool all);

// Returns the type attribute of splits, int32 or int64.
TypeAttrDef SplitsType();

// Writes splits to output i. InvalidArgument if they do not fit its type.
Status WriteSplits(KernelContext& ctx, int i, const RowSplits& splits);

}  // namespace penstock
