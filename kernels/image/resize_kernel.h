// SPDX-License-Identifier: Apache-2.0
//
// ResizeKernel: base of the kernels that resize images; GridAttrs and the other functions: parts of
// the definitions of their ops.
#pragma once

#include <vector>

#include "core/op/gradient.h"
#include "core/op/kernel.h"
#include "core/op/op_def.h"
#include "kernels/image/taps.h"

namespace penstock {

class ResizeKernel : public Kernel {
 public:
  // Reads the attributes of GridAttrs; half_pixel_centers only if the op has it.
  Status Init(const KernelInit& node) override;

 protected:
  ResizeGrid Grid(int64_t in, int64_t out) const {
    return {in, out, align_corners_, half_pixel_centers_};
  }

 private:
  bool align_corners_ = false, half_pixel_centers_ = false;
};

// Returns the attributes that say how output positions map to input positions.
std::vector<AttrDef> GridAttrs();
// Returns the values that the differentiated node has for these attributes.
Attrs GridAttributes(const GradientScope& g);
// Returns the gradient of an op that is linear in its first input: dy, resized by `op` to that
// input's height and width.
std::vector<Gradient> ResizedBySize(const GradientScope& g, const char* op);

}  // namespace penstock
