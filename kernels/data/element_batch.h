// SPDX-License-Identifier: Apache-2.0
//
// Batches of elements: tensors with one more dimension in front, and back. Thread-safe.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "kernels/data/element_store.h"

namespace penstock {

// Whether these tensors fit in `shapes` (empty: any will do), as one element or as a batch of them.
// InvalidArgument names the component.
Status CheckComponents(const Element& components, const std::vector<PartialShape>& shapes,
                       bool batched);

// The rows of `components`, which all have as many, as elements with memory of their own: none
// keeps the batch that it came with alive.
StatusOr<std::vector<Element>> SplitBatch(absl::Span<const Tensor> components);

// Component c of all `elements`, as output `output`. Each of them fills a box of the least shape
// that holds all and fits in `shape`, from its beginning; the rest is zero.
Status StackElements(const std::vector<Element>& elements, int c, const PartialShape& shape,
                     KernelContext& ctx, int output);

}  // namespace penstock
