// SPDX-License-Identifier: Apache-2.0
//
// Copies single rows out of tensors, stacks elements to batches, and checks and joins batches.
// Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// Returns a copy of row `index` of dimension 0. A copy, unlike a slice, does not keep the whole
// tensor alive. REQUIRES: rank >= 1, and a valid index.
StatusOr<Tensor> CopyRow(const Tensor& tensor, int64_t index);

// Stacks elements: each component of the result holds that component of all `elements`, with a new
// dimension 0. InvalidArgument if the shapes of a component differ. REQUIRES: at least one element.
StatusOr<Element> StackElements(const std::vector<Element>& elements);

// InvalidArgument unless `batch` has the types of `spec`, and all its components have the same
// number of rows.
Status CheckBatch(const Element& batch, const ElementSpec& spec);
// Joins batches along dimension 0. A single batch is returned as it is. InvalidArgument if the rows
// of a component have different shapes. REQUIRES: at least one batch; CheckBatch accepts all.
StatusOr<Element> JoinBatches(std::vector<Element> batches);

// Returns the spec of stacked elements of spec `spec`. Pass kUnknown as `count` if batches may be
// smaller.
ElementSpec BatchSpec(const ElementSpec& spec, int64_t count);

}  // namespace penstock
