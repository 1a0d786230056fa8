// SPDX-License-Identifier: Apache-2.0
//
// Shared by image ops: converts pixels of any type to floats and back, and reads the sizes of
// batches of images.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Converts n elements of a real type, from element `first` of `from` on, to floats.
void ToFloats(const Tensor& from, int64_t first, float* to, int64_t n);
// Converts n floats to the elements of `to` from element `first` on. Does nothing unless `to` has a
// floating type.
void FromFloats(const float* from, Tensor* to, int64_t first, int64_t n);

// A batch of images [batch, height, width, channels].
struct ImageBatch {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  // Checks the rank and that the images have pixels. InvalidArgument names `what`.
  static StatusOr<ImageBatch> Of(const char* what, const Shape& shape);
  int64_t row() const { return width * channels; }
  int64_t image() const { return height * row(); }
};

// The images of a gradient op: `from`, input 0 "grads", and `to`, input 1 "original_image".
struct GradientImages {
  ImageBatch from, to;
  // Returns the sizes of both inputs. InvalidArgument unless both have the same number of images
  // and of channels.
  static StatusOr<GradientImages> Of(const KernelContext& ctx);
};

// Returns height and width. InvalidArgument, which names `what`, unless `size` is a vector of two
// positive int32.
StatusOr<std::vector<int64_t>> SizeInput(const char* what, const Tensor& size);
// For shape functions: sets the output's shape to that of input 0, [batch, height, width,
// channels], with height and width from input `i`, as far as they are known. InvalidArgument if
// these are not positive.
Status SizedShape(ShapeScope& s, int i);

}  // namespace penstock
