// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/types/span.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

// The first inputs of saving and restoring several tensors. Valid as long as the inputs are.
struct SliceRequest {
  std::string file;  // a prefix, in the V2 format
  absl::Span<const std::string> names;
  absl::Span<const std::string> slices;  // "" for a whole tensor

  // REQUIRES of the file one string, one name and, if `has_slices`, one slice for each of `count`
  // tensors; else InvalidArgument.
  static StatusOr<SliceRequest> Parse(const KernelContext& ctx, int count, bool has_slices = true);
};

// States what is known of the tensors that are restored: input 2 says of each which part of which
// shape is wanted. It need not be constant.
Status RestoredShapes(ShapeScope& s);

}  // namespace penstock
