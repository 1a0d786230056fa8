// SPDX-License-Identifier: Apache-2.0
//
// ConvGeometry: the sizes of one convolution of NHWC images with an HWIO filter, or of NDHWC
// volumes with a DHWIO filter; and the functions that compute the convolution and its two
// gradients.
//
// Images are [batch, h.in, w.in, in_channels], filters [h.size, w.size, in_channels, out_channels],
// outputs [batch, h.out, w.out, out_channels]; volumes have the depth before the height. With
// groups, a filter has the input channels of one group. All buffers are dense and do not overlap.
#pragma once

#include <cstdint>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "kernels/nn/window.h"

namespace penstock {

struct ConvGeometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0;
  Window d = kNoWindow, h, w;
  bool volumes = false;
  int64_t groups = 1;  // of channels (conv_groups.h); only image kernels allow more than one
  bool operator==(const ConvGeometry&) const = default;

  // Returns the geometry. InvalidArgument if ranks or channels do not fit, or if a size overflows.
  static StatusOr<ConvGeometry> Of(const WindowAttrs& window, const Shape& image,
                                   const Shape& filter);
  Shape image() const { return JoinSizes(batch, d.in, h.in, w.in, in_channels); }
  Shape filter() const {
    Shape shape({h.size, w.size, in_channels / groups, out_channels});
    if (volumes) shape.InsertDim(0, d.size);
    return shape;
  }
  Shape output() const { return JoinSizes(batch, d.out, h.out, w.out, out_channels); }
  int64_t in_pixels() const { return d.in * h.in * w.in; }  // per image
  int64_t out_pixels() const { return d.out * h.out * w.out; }
  int64_t patch() const {
    return d.size * h.size * w.size * (in_channels / groups);
  }  // elements of one window
  ConvGeometry OneGroup() const {
    ConvGeometry one = *this;
    one.in_channels /= groups;
    one.out_channels /= groups;
    one.groups = 1;
    return one;
  }
  double flops() const {
    return 2.0 * static_cast<double>(batch * out_pixels()) * static_cast<double>(patch()) *
           static_cast<double>(out_channels);
  }

 private:
  Shape JoinSizes(int64_t n, int64_t depth, int64_t height, int64_t width, int64_t channels) const {
    return volumes ? Shape({n, depth, height, width, channels})
                   : Shape({n, height, width, channels});
  }
};

// Compute the convolution and its gradients for float, by oneDNN if that is faster, else by the
// Unrolled functions.
void ConvForward(const ConvGeometry& g, const float* image, const float* filter, float* output,
                 Scheduler& threads);
void ConvImageGradient(const ConvGeometry& g, const float* filter, const float* doutput,
                       float* dimage, Scheduler& threads);
void ConvFilterGradient(const ConvGeometry& g, const float* image, const float* doutput,
                        float* dfilter, Scheduler& threads);

// Compute the same without oneDNN, for float, double and int32: copy windows into the rows of a
// matrix (im2col) and multiply matrices.
template <class T>
void UnrolledForward(const ConvGeometry& g, const T* image, const T* filter, T* output,
                     Scheduler& threads);
template <class T>
void UnrolledImageGradient(const ConvGeometry& g, const T* filter, const T* doutput, T* dimage,
                           Scheduler& threads);
template <class T>
void UnrolledFilterGradient(const ConvGeometry& g, const T* image, const T* doutput, T* dfilter,
                            Scheduler& threads);

}  // namespace penstock
