// SPDX-License-Identifier: Apache-2.0
//
// Rows of tensors: out of one, and many into one. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// A copy of row `index` of dimension 0, so that an element does not keep the whole tensor alive.
// REQUIRES rank >= 1 and a valid index.
StatusOr<Tensor> CopyRow(const Tensor& tensor, int64_t index);

// One element whose components are those of `elements`, each with a new dimension 0.
// InvalidArgument where the shapes of a component differ. REQUIRES at least one element.
StatusOr<Element> StackElements(const std::vector<Element>& elements);

// The spec of such batches. `count` is kUnknown where batches may be smaller.
ElementSpec BatchSpec(const ElementSpec& spec, int64_t count);

}  // namespace penstock
