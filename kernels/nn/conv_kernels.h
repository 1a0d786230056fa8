// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the convolution ops and helpers for the ops' definitions, for images and volumes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/op/flops.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/conv_geometry.h"
#include "kernels/nn/conv_groups.h"
#include "kernels/nn/float_view.h"

namespace penstock {

// The type in which T is computed: float for 16-bit floats.
template <class T>
using ConvType =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

inline void Forward(const ConvGeometry& g, const float* x, const float* w, float* y, Scheduler& t) {
  ConvForward(g, x, w, y, t);
}
inline void ImageGradient(const ConvGeometry& g, const float* w, const float* dy, float* dx,
                          Scheduler& t) {
  ConvImageGradient(g, w, dy, dx, t);
}
inline void FilterGradient(const ConvGeometry& g, const float* x, const float* dy, float* dw,
                           Scheduler& t) {
  ConvFilterGradient(g, x, dy, dw, t);
}
template <class T>
void Forward(const ConvGeometry& g, const T* x, const T* w, T* y, Scheduler& t) {
  UnrolledForward(g, x, w, y, t);
}
template <class T>
void ImageGradient(const ConvGeometry& g, const T* w, const T* dy, T* dx, Scheduler& t) {
  UnrolledImageGradient(g, w, dy, dx, t);
}
template <class T>
void FilterGradient(const ConvGeometry& g, const T* x, const T* dy, T* dw, Scheduler& t) {
  UnrolledFilterGradient(g, x, dy, dw, t);
}

class ConvKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    // Two old ops on volumes have no attribute data_format.
    const bool volumes = node.attrs.count("data_format") == 0;
    ASSIGN_OR_RETURN(window_, WindowAttrs::From(node.attrs, true, volumes ? "NDHWC" : "NHWC"));
    return OkStatus();
  }

  // Returns the shape that input `input` gives: either a vector of sizes, or a tensor of that
  // shape. An image's shape may also be given as height and width alone; its other sizes are then
  // `batch` and `channels`. InvalidArgument, which names `what`, if the input has another form.
  static StatusOr<Shape> ShapeInput(const char* what, const Tensor& input, int rank,
                                    int64_t batch = -1, int64_t channels = -1) {
    if (IsFloating(input.dtype())) return input.shape();
    Dims sizes;
    for (int64_t i = 0; input.rank() == 1 && i < std::min<int64_t>(input.dim(0), rank + 1); ++i) {
      sizes.push_back(input.dtype() == DType::kInt32 ? input.data<int32_t>()[i]
                                                     : input.data<int64_t>()[i]);
    }
    if (static_cast<int>(sizes.size()) == rank) return Shape::Make(sizes);
    if (sizes.size() == 2 && rank == 4 && batch >= 0) {
      return Shape::Make(Dims{batch, sizes[0], sizes[1], channels});
    }
    return InvalidArgument(what, " must be a vector of ", rank, " sizes, is ", input.ToString());
  }

  static Status ExpectGradient(const Tensor& dy, const ConvGeometry& g) {
    if (dy.shape() == g.output()) return OkStatus();
    return InvalidArgument("out_backprop must have the convolution's output shape ",
                           g.output().ToString(), ", has ", dy.shape().ToString());
  }

  // If there is nothing to compute, fills the result with zeros and returns true; else returns
  // false.
  static bool FillIfEmpty(const ConvGeometry& g, Tensor* out) {
    if (g.output().num_elements() > 0 && g.image().num_elements() > 0 &&
        g.filter().num_elements() > 0) {
      return false;
    }
    std::fill_n(static_cast<char*>(out->mutable_raw_data()), out->bytes(), 0);
    return true;
  }

  WindowAttrs window_;
};

template <class T>
class ConvForwardKernel final : public ConvKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const Tensor& filter = ctx.input(1);
    ASSIGN_OR_RETURN(const ConvGeometry g,
                     ConvGeometry::Of(window_, image.shape(), filter.shape()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &out));
    if (FillIfEmpty(g, out)) return OkStatus();
    const FloatInput<ConvType<T>> x(image), w(filter);
    FloatOutput<ConvType<T>> y(out);
    ForEachGroup(g, x.data(), ImageRows(g), w.data(), FilterRows(g), y.data(), OutputRows(g),
                 [&](const ConvGeometry& one, const auto* image, const auto* filter, auto* output) {
                   Forward(one, image, filter, output, ctx.threads());
                 });
    return OkStatus();
  }
};

template <class T>
class ConvBackpropInputKernel final : public ConvKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& filter = ctx.input(1);
    const Tensor& dy = ctx.input(2);
    const int rank = window_.rank;
    if (filter.rank() != rank || dy.rank() != rank) {
      return InvalidArgument("filter and out_backprop must have ", rank,
                             " dimensions, have shapes ", filter.shape().ToString(), " and ",
                             dy.shape().ToString());
    }
    // If the sizes have no channels, the convolution has no groups.
    ASSIGN_OR_RETURN(const Shape image, ShapeInput("input_sizes", ctx.input(0), rank, dy.dim(0),
                                                   filter.dim(rank - 2)));
    ASSIGN_OR_RETURN(const ConvGeometry g, ConvGeometry::Of(window_, image, filter.shape()));
    RETURN_IF_ERROR(ExpectGradient(dy, g));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, image, &out));
    if (FillIfEmpty(g, out)) return OkStatus();
    const FloatInput<ConvType<T>> w(filter), d(dy);
    FloatOutput<ConvType<T>> dx(out);
    ForEachGroup(g, w.data(), FilterRows(g), d.data(), OutputRows(g), dx.data(), ImageRows(g),
                 [&](const ConvGeometry& one, const auto* filter, const auto* grad, auto* result) {
                   ImageGradient(one, filter, grad, result, ctx.threads());
                 });
    return OkStatus();
  }
};

template <class T>
class ConvBackpropFilterKernel final : public ConvKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const Tensor& dy = ctx.input(2);
    ASSIGN_OR_RETURN(const Shape filter, ShapeInput("filter_sizes", ctx.input(1), window_.rank));
    ASSIGN_OR_RETURN(const ConvGeometry g, ConvGeometry::Of(window_, image.shape(), filter));
    RETURN_IF_ERROR(ExpectGradient(dy, g));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, filter, &out));
    if (FillIfEmpty(g, out)) return OkStatus();
    const FloatInput<ConvType<T>> x(image), d(dy);
    FloatOutput<ConvType<T>> dw(out);
    ForEachGroup(g, x.data(), ImageRows(g), d.data(), OutputRows(g), dw.data(), FilterRows(g),
                 [&](const ConvGeometry& one, const auto* image, const auto* grad, auto* result) {
                   FilterGradient(one, image, grad, result, ctx.threads());
                 });
    return OkStatus();
  }
};

Status ConvShape(ShapeScope& s);
// Shape function: the shape that constant input `input` holds.
Status ConvShapeFromSizes(ShapeScope& s, int input);

// For a convolution of 2-D images or of 3-D volumes: ConvAttrs returns the attributes to declare,
// ConvAttributes the values that a gradient node copies.
enum class ConvOf { kImages, kVolumes };
std::vector<AttrDef> ConvAttrs(ConvOf what);
Attrs ConvAttributes(const GradientScope& g);

// Add a node of the convolution or of one of its gradients, with the attributes of the
// differentiated op.
Output ConvNode(const GradientScope& g, ConvOf what, Output image, Output filter);
Output ImageGradientNode(const GradientScope& g, ConvOf what, Output image, Output filter,
                         Output dy);
Output FilterGradientNode(const GradientScope& g, ConvOf what, Output image, Output filter,
                          Output dy);

Attrs ConvExampleAttrs(ConvOf what, const char* padding, int64_t stride);

// Return the operations of the gradient ops, for OpDef::flops. Input 2 of these ops is the gradient
// of the result. Each op does as many multiplications as the convolution itself, for any strides
// and channels. The filter is input 1 of the image's gradient op, and output 0 of the filter's
// gradient op.
double ConvolutionInputGradientFlops(const FlopsScope& scope);
double ConvolutionFilterGradientFlops(const FlopsScope& scope);

}  // namespace penstock
