// SPDX-License-Identifier: Apache-2.0
//
// Shared by pooling ops: the windows over height and width of NHWC images, and also over depth of
// NDHWC volumes; reading their sizes; attributes and shape functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/kernel.h"
#include "core/op/op_def.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/window.h"

namespace penstock {

struct PoolGeometry {
  int64_t batch = 0, channels = 0;
  Window d = kNoWindow, h, w;
  bool volumes = false;

  Shape output() const {
    return volumes ? Shape({batch, d.out, h.out, w.out, channels})
                   : Shape({batch, h.out, w.out, channels});
  }
  int64_t out_pixels() const { return d.out * h.out * w.out; }  // per image
  int64_t in_pixels() const { return d.in * h.in * w.in; }
  // Returns the approximate cost of one image.
  double ImageNanos() const {
    const auto size = [](const Window& w) { return static_cast<double>(std::min(w.size, w.in)); };
    return 0.3 * static_cast<double>(out_pixels() * channels) * size(d) * size(h) * size(w) + 100;
  }
};

// Calls visit(input offset, output offset) for each input pixel and each output pixel whose window
// contains it, in image b, window by window. Offsets count elements and refer to channel 0. Does
// nothing if there is no channel.
template <class Visit>
void ForEachPair(const PoolGeometry& g, int64_t b, const Visit& visit) {
  if (g.channels == 0) return;  // without channels, height and width may be huge
  int64_t out = b * g.out_pixels() * g.channels;
  for (int64_t od = 0; od < g.d.out; ++od) {
    for (int64_t oh = 0; oh < g.h.out; ++oh) {
      for (int64_t ow = 0; ow < g.w.out; ++ow, out += g.channels) {
        g.d.ForEachInside(od, [&](int64_t id) {
          g.h.ForEachInside(oh, [&](int64_t ih) {
            g.w.ForEachInside(ow, [&](int64_t iw) {
              visit((((b * g.d.in + id) * g.h.in + ih) * g.w.in + iw) * g.channels, out);
            });
          });
        });
      }
    }
  }
}

class PoolKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override;
  // Returns the geometry for images of shape `image`. InvalidArgument if they do not fit the
  // windows. `sizes_input`: for V2 ops, the index of the input ksize; strides is the next input.
  StatusOr<PoolGeometry> Geometry(const KernelContext& ctx, const Shape& image,
                                  int sizes_input) const;
  static Status ExpectShape(const char* what, const Tensor& tensor, const Shape& shape);

 private:
  WindowAttrs window_;
  std::vector<int64_t> sizes_;
  bool from_inputs_ = false;
};

// Shape function of pooling ops whose window is given by attributes or (V2) by constant inputs.
Status PoolShape(ShapeScope& s);

// Windows over channels, which only MaxPool and MaxPoolV2 have: groups of neighbouring channels.
// Returns the channels of a window; 1 for windows over height and width. Unimplemented if windows
// overlap, leave gaps or extend over height or width, too.
StatusOr<int64_t> DepthWindow(const std::vector<int64_t>& sizes,
                              const std::vector<int64_t>& strides);
StatusOr<int64_t> DepthWindowInput(const Tensor& sizes, const Tensor& strides);
// Returns the shape of the pooled images. Unimplemented unless `depth` divides their channels.
StatusOr<Shape> DepthwiseShape(const Shape& image, int64_t depth);
// Shape function of MaxPool and MaxPoolV2.
Status MaxPoolShape(ShapeScope& s);

// Returns the attributes of the forward op that its gradient op copies.
Attrs WindowAttributes(const GradientScope& g);

enum class PoolPadding { kAutomatic, kExplicitToo };
// Return the attributes of pooling ops. The V2 ops have no attributes for the window, which is an
// input.
std::vector<AttrDef> PoolAttrs(PoolPadding padding);
std::vector<AttrDef> Pool3DAttrs();
std::vector<AttrDef> PoolV2Attrs();

// Return attributes for examples of calls.
Attrs ExampleWindow();
Attrs ExampleWindow3D();

}  // namespace penstock
