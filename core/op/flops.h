// SPDX-License-Identifier: Apache-2.0
//
// Estimates the floating-point operations of one execution of a node from its shapes, as far as
// they are known. The placer's static estimates start from these numbers.
#pragma once

#include "absl/types/span.h"
#include "core/op/attr.h"
#include "core/tensor/shape.h"

namespace penstock {

// Used for a dimension that is unknown before the step, such as the batch.
constexpr double kUnknownDim = 64;

// Returns the number of elements, with kUnknownDim for each unknown dimension and its square for an
// unknown rank.
double Elements(const PartialShape& shape);

// The view of a node that OpDef::flops gets. Shapes may be partly or completely unknown.
struct FlopsScope {
  const Attrs& attrs;
  absl::Span<const PartialShape> inputs;
  absl::Span<const PartialShape> outputs;
};

// Returns the operations of any version of MatMul or BatchMatMul: two for each element of the
// output and each element of the dimension that is summed over.
double MatMulFlops(const FlopsScope& scope);

// Returns the operations of a convolution whose input 1 is the filter: two for each element of
// output 0 and each element of the filter that belongs to one output channel.
double ConvolutionFlops(const FlopsScope& scope);

}  // namespace penstock
