// SPDX-License-Identifier: Apache-2.0
//
// The arguments that Save, Restore and their V2 forms share: a file, and the name and slice of each
// tensor. A slice is written as in TensorFlow, "SHAPE EXTENTS": "4 3 0,2:-" is rows 0 and 1 of a
// 4 x 3 tensor (core/checkpoint/tensor_slice.h).
#pragma once

#include <string>

#include "absl/types/span.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

// The first inputs of ops that save or restore several tensors. Borrows the inputs.
struct SliceRequest {
  std::string file;  // in the V2 format, the prefix of the files' names
  absl::Span<const std::string> names;
  absl::Span<const std::string> slices;  // "" for a full tensor

  // Reads the inputs. InvalidArgument unless they hold one file name and, for each of `count`
  // tensors, one tensor name and, if `has_slices`, one slice.
  static StatusOr<SliceRequest> Parse(const KernelContext& ctx, int count, bool has_slices = true);
};

// Shape function: sets the shapes of restored tensors as far as they are known. Input 2 holds the
// shape and slice of each tensor; it need not be constant.
Status RestoredShapes(ShapeScope& s);

}  // namespace penstock
