// SPDX-License-Identifier: Apache-2.0
//
// SliceRequest, RestoredShapes: the first inputs of the kernels that save and restore tensors, and
// the shapes of their outputs. A SliceRequest is valid as long as the inputs it was parsed from.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

// The first inputs of ops that save or restore several tensors. Borrows the inputs.
struct SliceRequest {
  std::string file;  // in the V2 format, a prefix
  absl::Span<const std::string> names;
  absl::Span<const std::string> slices;  // "" for a full tensor

  // InvalidArgument unless the inputs hold one file name and, for each of `count` tensors, one
  // tensor name and, if `has_slices`, one slice.
  static StatusOr<SliceRequest> Parse(const KernelContext& ctx, int count, bool has_slices = true);
};

// Shape function: sets the shapes of restored tensors as far as they are known. Input 2 gives shape
// and slice of each tensor; it need not be constant.
Status RestoredShapes(ShapeScope& s);

}  // namespace penstock
