// SPDX-License-Identifier: Apache-2.0
//
// How many floating-point operations one execution of a node takes, as far as its shapes tell: what
// the placer's static estimates begin with.
#pragma once

#include "absl/types/span.h"
#include "core/op/attr.h"
#include "core/tensor/shape.h"

namespace penstock {

// Stands for a dimension that is not known before the step: a batch.
constexpr double kUnknownDim = 64;

// The number of elements, with kUnknownDim for each unknown dimension and its square for an unknown
// rank.
double Elements(const PartialShape& shape);

// The view of a node that OpDef::flops gets. Shapes may be unknown, in part or altogether.
struct FlopsScope {
  const Attrs& attrs;
  absl::Span<const PartialShape> inputs;
  absl::Span<const PartialShape> outputs;
};

// MatMul, and BatchMatMul in its versions: two operations for each element of the output and of the
// dimension that is summed over.
double MatMulFlops(const FlopsScope& scope);

// Convolutions, whose second input is the filter or its shape: two operations for each element of
// output 0 and of the filter per output channel. The same for both gradients.
double ConvolutionFlops(const FlopsScope& scope);

}  // namespace penstock
