// SPDX-License-Identifier: Apache-2.0
//
// Paddings: the number of elements to add before and after each dimension. Shared by Pad, PadV2 and
// MirrorPad.
#pragma once

#include <cstdint>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/op/shape_scope.h"
#include "core/tensor/tensor.h"

namespace penstock {

class Paddings {
 public:
  // Reads a matrix of `rank` rows and two columns. InvalidArgument if a value is negative.
  static StatusOr<Paddings> Of(const Tensor& tensor, int rank);

  int64_t before(int i) const { return pairs_[2 * i]; }
  int64_t after(int i) const { return pairs_[2 * i + 1]; }
  // Returns `dims` with the padding added. kUnknown stays kUnknown; a sum that does not fit in 64
  // bits becomes kUnknown.
  Dims Padded(absl::Span<const int64_t> dims) const;

 private:
  Dims pairs_;
};

// Copies `inner` to its place in `padded`.
void CopyInner(const Paddings& pads, const Tensor& inner, Tensor& padded, Scheduler& threads);

// Shape function: sets output 0 to the shape of input 0, padded by input 1. InvalidArgument if the
// paddings do not fit.
Status PaddedShape(ShapeScope& s);

}  // namespace penstock
