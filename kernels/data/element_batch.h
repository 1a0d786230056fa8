// SPDX-License-Identifier: Apache-2.0
//
// Stacks elements into batches (tensors with one more dimension in front) and splits batches into
// elements. Thread-safe.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "kernels/data/element_store.h"

namespace penstock {

// Checks that `components` fit `shapes` (any shapes if it is empty), as one element or as a batch
// of elements. InvalidArgument names the component.
Status CheckComponents(const Element& components, const std::vector<PartialShape>& shapes,
                       bool batched);

// Returns the rows of `components` as elements. Each element is a copy, so that none keeps the
// batch alive. InvalidArgument unless all components have the same number of rows. REQUIRES: there
// is at least one component.
StatusOr<std::vector<Element>> SplitBatch(absl::Span<const Tensor> components);

// Stacks component c of all `elements` into output `output`. All elements are padded with zeros at
// the end of each dimension, to the least shape that holds all of them and fits `shape`.
// InvalidArgument if the output would have too many elements.
Status StackElements(const std::vector<Element>& elements, int c, const PartialShape& shape,
                     KernelContext& ctx, int output);

}  // namespace penstock
