// SPDX-License-Identifier: Apache-2.0
//
// Estimates the number of floating-point operations of one execution of a node from its shapes,
// which may be partly unknown. The placer's static cost estimates use these numbers.
#pragma once

#include "absl/types/span.h"
#include "core/op/attr.h"
#include "core/tensor/shape.h"

namespace penstock {

// The assumed size of a dimension that is unknown before the step, such as the batch.
constexpr double kUnknownDim = 64;

// Returns the number of elements of `shape`. Counts kUnknownDim for each unknown dimension, and
// kUnknownDim squared for a shape of unknown rank.
double Elements(const PartialShape& shape);

// The view of a node that OpDef::flops gets. Shapes may be partly or completely unknown.
struct FlopsScope {
  const Attrs& attrs;
  absl::Span<const PartialShape> inputs;
  absl::Span<const PartialShape> outputs;
};

// Returns the operations of any version of MatMul or BatchMatMul: 2 * (elements of the output) *
// (size of the contracted dimension).
double MatMulFlops(const FlopsScope& scope);

// Returns the operations of a convolution with the filter as input 1: 2 * (elements of output 0) *
// (elements of the filter per output channel).
double ConvolutionFlops(const FlopsScope& scope);

}  // namespace penstock
