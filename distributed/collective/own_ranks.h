// SPDX-License-Identifier: Apache-2.0
//
// The tensors of the ranks of one task in one execution of a collective. A task takes part in the
// algorithm as one peer: the inputs of its ranks become one flat tensor, and each rank gets its
// part of the flat result.
//
// `calls`: the calls of the task's ranks, in the order of the ranks, all with one FingerprintOf.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/runtime/collective.h"

namespace penstock::collective {

// Returns the merged inputs, or an invalid tensor if all ranks only receive a broadcast.
// InvalidArgument if the type cannot be merged.
StatusOr<Tensor> MergeInputs(const std::vector<CollectiveCall>& calls);

// Returns the number of elements of the task's flat result, in a group of `group_size` ranks.
int64_t ResultElements(const std::vector<CollectiveCall>& calls, int64_t group_size);

// Returns the result of a rank. `position` is its number among the ranks of the task.
Tensor ResultOf(const CollectiveCall& call, int64_t position, int64_t group_size,
                const Tensor& result);

}  // namespace penstock::collective
