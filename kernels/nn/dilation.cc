// SPDX-License-Identifier: Apache-2.0
//
// Dilation2D (grey-scale morphology: the largest sum of pixel and filter element under a window)
// and its two gradients. Gradients go to the first pair that gave the maximum.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/math/add.h"
#include "kernels/nn/window.h"

namespace penstock {
namespace {

// Returns the attributes as WindowAttrs; InvalidArgument if one is not valid. Other ops call the
// attribute `rates` dilations.
StatusOr<WindowAttrs> DilationWindow(const Attrs& attrs) {
  Attrs renamed = {{"strides", attrs.at("strides")},
                   {"dilations", attrs.at("rates")},
                   {"padding", attrs.at("padding")}};
  return WindowAttrs::From(renamed);
}

struct DilationGeometry {
  int64_t batch = 0, channels = 0;
  Window h, w;
  Shape output() const { return Shape({batch, h.out, w.out, channels}); }
};

class DilationKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(window_, DilationWindow(node.attrs));
    return OkStatus();
  }
  StatusOr<DilationGeometry> Geometry(const KernelContext& ctx) const {
    const Shape &image = ctx.input(0).shape(), &filter = ctx.input(1).shape();
    if (image.rank() != 4 || filter.rank() != 3 || image.dim(3) != filter.dim(2)) {
      return InvalidArgument("input must have shape [batch, height, width, channels] and filter ",
                             "[height, width, channels], have ", image.ToString(), " and ",
                             filter.ToString());
    }
    DilationGeometry g{.batch = image.dim(0), .channels = image.dim(3)};
    ASSIGN_OR_RETURN(g.h, window_.MakeWindow(1, image.dim(1), filter.dim(0)));
    ASSIGN_OR_RETURN(g.w, window_.MakeWindow(2, image.dim(2), filter.dim(1)));
    return g;
  }

 private:
  WindowAttrs window_;
};

// Calls found(output, maximum, pixel, tap) for every output of channels [begin, end): the flat
// indices of the output, and of the pixel and the filter element that gave the maximum. If no sum
// exceeds the type's lowest number, that number is the maximum, with the first pixel under the
// window and the filter's first element.
template <class T, class Found>
void ForEachMaximum(const DilationGeometry& g, int64_t begin, int64_t end, const T* x, const T* f,
                    const Found& found) {
  const int64_t pixels = g.h.out * g.w.out;
  for (int64_t p = 0; p < g.batch * pixels; ++p) {
    const int64_t b = p / pixels;
    const int64_t h0 = p / g.w.out % g.h.out * g.h.stride - g.h.pad_before;
    const int64_t w0 = p % g.w.out * g.w.stride - g.w.pad_before;
    const auto pixel = [&](int64_t h, int64_t w) {
      return ((b * g.h.in + h) * g.w.in + w) * g.channels;
    };
    for (int64_t c = begin; c < end; ++c) {
      T largest = std::numeric_limits<T>::lowest();
      int64_t at = pixel(std::max<int64_t>(h0, 0), std::max<int64_t>(w0, 0)) + c, tap = c;
      for (int64_t kh = 0; kh < g.h.size; ++kh) {
        const int64_t h = h0 + kh * g.h.dilation;
        if (h < 0 || h >= g.h.in) continue;
        for (int64_t kw = 0; kw < g.w.size; ++kw) {
          const int64_t w = w0 + kw * g.w.dilation;
          if (w < 0 || w >= g.w.in) continue;
          const int64_t i = pixel(h, w) + c, k = (kh * g.w.size + kw) * g.channels + c;
          const T sum = AddFn()(x[i], f[k]);
          if (!(sum > largest)) continue;
          largest = sum;
          at = i;
          tap = k;
        }
      }
      found(p * g.channels + c, largest, at, tap);
    }
  }
}

enum class DilationResult { kForward, kImageGradient, kFilterGradient };

template <class T, DilationResult kResult>
class DilationKernelFor : public DilationKernel {
  Status Compute(KernelContext& ctx) final {
    ASSIGN_OR_RETURN(const DilationGeometry g, Geometry(ctx));
    constexpr bool kForward = kResult == DilationResult::kForward;
    if (!kForward && ctx.input(2).shape() != g.output()) {
      return InvalidArgument("out_backprop must have shape ", g.output().ToString(), ", has ",
                             ctx.input(2).shape().ToString());
    }
    const int like = kResult == DilationResult::kImageGradient ? 0 : 1;
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, kForward ? g.output() : ctx.input(like).shape(), &out));
    const T* x = ctx.input(0).template data<T>();
    const T* f = ctx.input(1).template data<T>();
    const T* dy = kForward ? nullptr : ctx.input(2).template data<T>();
    T* result = out->template mutable_data<T>();
    std::fill_n(result, out->num_elements(), T(0));
    // Threads process different channels, because channels are independent, also in the filter's
    // gradient.
    const double channel_ns = static_cast<double>(
        g.output().num_elements() / std::max<int64_t>(g.channels, 1) * g.h.size * g.w.size);
    ctx.threads().ParallelFor(g.channels, channel_ns, [&](int64_t begin, int64_t end) {
      ForEachMaximum(g, begin, end, x, f, [&](int64_t o, T largest, int64_t pixel, int64_t tap) {
        if constexpr (kForward) {
          result[o] = largest;
        } else {
          T& sum = result[kResult == DilationResult::kImageGradient ? pixel : tap];
          sum = AddFn()(sum, dy[o]);
        }
      });
    });
    return OkStatus();
  }
};
template <class T>
class Dilation final : public DilationKernelFor<T, DilationResult::kForward> {};
template <class T>
class ImageGradient final : public DilationKernelFor<T, DilationResult::kImageGradient> {};
template <class T>
class FilterGradient final : public DilationKernelFor<T, DilationResult::kFilterGradient> {};

Status DilationShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(PartialShape filter, s.WithRank(1, 3));
  ASSIGN_OR_RETURN(const WindowAttrs window, DilationWindow(s.attrs()));
  PartialShape out = PartialShape::UnknownOfRank(4);
  if (!image.known_rank()) image = out;
  if (!filter.known_rank()) filter = PartialShape::UnknownOfRank(3);
  out.set_dim(0, image.dim(0));
  out.set_dim(3, image.dim(3) >= 0 ? image.dim(3) : filter.dim(2));
  for (int dim : {1, 2}) {
    ASSIGN_OR_RETURN(const int64_t size,
                     WindowOutput(window, dim, image.dim(dim), filter.dim(dim - 1)));
    out.set_dim(dim, size);
  }
  s.set_output(0, out);
  return OkStatus();
}

Status LikeFilter(ShapeScope& s) {
  s.set_output(0, s.input(1));
  return OkStatus();
}

std::vector<Gradient> DilationGradient(const GradientScope& g) {
  const Attrs attrs = {{"strides", g.attrs().at("strides")},
                       {"rates", g.attrs().at("rates")},
                       {"padding", g.attrs().at("padding")}};
  return {Call("Dilation2DBackpropInput", {g.x(0), g.x(1), g.dy()}, attrs),
          Call("Dilation2DBackpropFilter", {g.x(0), g.x(1), g.dy()}, attrs)};
}

std::vector<AttrDef> DilationAttrs() {
  return {{"strides", IntList{4}}, {"rates", IntList{4}}, {"padding", OneOf{{"SAME", "VALID"}}}};
}

// Returns examples of the forward op, or of a gradient op. Their gradients are not checked by
// central differences, because the gradient ops are not differentiable. The test compares them with
// TensorFlow's numbers.
std::vector<Example> Examples(bool gradient) {
  std::vector<std::vector<ExampleTensor>> inputs = {{{{1, 4, 3, 2}}}, {{{2, 2, 2}}}};
  if (gradient) inputs.push_back({{{1, 2, 3, 2}}});
  return {{.inputs = inputs,
           .attrs = {{"strides", std::vector<int64_t>{1, 2, 1, 1}},
                     {"rates", std::vector<int64_t>{1, 2, 1, 1}},
                     {"padding", "SAME"}},
           .check_gradient = false}};
}

#define REAL_TYPES                                                                               \
  float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, uint16_t, half, bfloat16, uint32_t, \
      uint64_t

}  // namespace

OP(Dilation2D) {
  return {
      .doc =
          "Returns, for each channel, the largest sum of a pixel and the filter element "
          "over it, in a window that slides over images.",
      .inputs = {{"input", "T"}, {"filter", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kReal}},
      .attrs = DilationAttrs(),
      .shape = DilationShape,
      .gradient = DilationGradient,
      .examples = Examples(false),
  };
}
KERNEL(Dilation2D, Dilation, REAL_TYPES);

OP(Dilation2DBackpropInput) {
  return {
      .doc =
          "The gradient of Dilation2D for its images: it flows to the pixel of each "
          "maximum.",
      .inputs = {{"input", "T"}, {"filter", "T"}, {"out_backprop", "T"}},
      .outputs = {{"in_backprop", "T"}},
      .types = {{"T", kReal}},
      .attrs = DilationAttrs(),
      .shape = SameShape,
      .examples = Examples(true),
  };
}
KERNEL(Dilation2DBackpropInput, ImageGradient, REAL_TYPES);

OP(Dilation2DBackpropFilter) {
  return {
      .doc =
          "The gradient of Dilation2D for its filter: it flows to the filter element of "
          "each maximum.",
      .inputs = {{"input", "T"}, {"filter", "T"}, {"out_backprop", "T"}},
      .outputs = {{"filter_backprop", "T"}},
      .types = {{"T", kReal}},
      .attrs = DilationAttrs(),
      .shape = LikeFilter,
      .examples = Examples(true),
  };
}
KERNEL(Dilation2DBackpropFilter, FilterGradient, REAL_TYPES);

}  // namespace penstock
