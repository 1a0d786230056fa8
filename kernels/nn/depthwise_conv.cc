// SPDX-License-Identifier: Apache-2.0
//
// DepthwiseConv2dNative and its two gradients: each channel is convolved separately, with
// `multiplier` filters. Images are NHWC, filters [height, width, channels, multiplier].
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/op/flops.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/float_view.h"
#include "kernels/nn/window.h"

namespace penstock {
namespace {

struct DepthwiseGeometry {
  int64_t batch = 0, channels = 0, multiplier = 0;
  Window h, w;

  static StatusOr<DepthwiseGeometry> Of(const WindowAttrs& window, const Shape& image,
                                        const Shape& filter) {
    if (image.rank() != 4 || filter.rank() != 4) {
      return InvalidArgument("input and filter must have 4 dimensions, have shapes ",
                             image.ToString(), " and ", filter.ToString());
    }
    if (image.dim(3) != filter.dim(2)) {
      return InvalidArgument("input has ", image.dim(3), " channels, the filter ",
                             filter.ToString(), " is for ", filter.dim(2));
    }
    DepthwiseGeometry g{
        .batch = image.dim(0), .channels = image.dim(3), .multiplier = filter.dim(3)};
    ASSIGN_OR_RETURN(g.h, window.MakeWindow(1, image.dim(1), filter.dim(0)));
    ASSIGN_OR_RETURN(g.w, window.MakeWindow(2, image.dim(2), filter.dim(1)));
    const int64_t out[] = {g.batch, g.h.out, g.w.out, g.channels, g.multiplier};
    RETURN_IF_ERROR(CheckedProduct(out).status());
    return g;
  }
  int64_t out_channels() const { return channels * multiplier; }
  Shape output() const { return Shape({batch, h.out, w.out, out_channels()}); }
  int64_t filter_size() const { return h.size * w.size * out_channels(); }
  // Returns the cost of a row of outputs.
  double RowNanos() const { return 0.2 * static_cast<double>(w.out * filter_size()) + 50; }
};

// Computes y[c, m] += x[c] * w[c, m] for each channel c and each of its filters m.
template <class F>
void MultiplyAdd(const DepthwiseGeometry& g, const F* x, const F* w, F* y) {
  if (g.multiplier == 1) {
#pragma GCC ivdep
    for (int64_t c = 0; c < g.channels; ++c) y[c] += x[c] * w[c];
    return;
  }
  for (int64_t c = 0; c < g.channels; ++c, w += g.multiplier, y += g.multiplier) {
#pragma GCC ivdep
    for (int64_t m = 0; m < g.multiplier; ++m) y[m] += x[c] * w[m];
  }
}

// Calls fn(offset in an image row, offset in the filter row) for the taps of output column ow that
// are inside the image.
template <class Fn>
void ForEachTap(const DepthwiseGeometry& g, int64_t ow, const Fn& fn) {
  int64_t iw = ow * g.w.stride - g.w.pad_before;
  for (int64_t k = 0; k < g.w.size; ++k, iw += g.w.dilation) {
    if (iw >= 0 && iw < g.w.in) fn(iw * g.channels, k * g.out_channels());
  }
}

// Computes output row r (of all images). Each pixel sums over the rows of the image under its
// window.
template <class F>
void ForwardRow(const DepthwiseGeometry& g, int64_t r, const F* x, const F* w, F* y) {
  const int64_t b = r / g.h.out, oh = r % g.h.out;
  std::fill_n(y, g.w.out * g.out_channels(), F(0));
  int64_t ih = oh * g.h.stride - g.h.pad_before;
  for (int64_t k = 0; k < g.h.size; ++k, ih += g.h.dilation) {
    if (ih < 0 || ih >= g.h.in) continue;
    const F* row = x + (b * g.h.in + ih) * g.w.in * g.channels;
    const F* taps = w + k * g.w.size * g.out_channels();
    for (int64_t ow = 0; ow < g.w.out; ++ow) {
      ForEachTap(g, ow, [&](int64_t in, int64_t tap) {
        MultiplyAdd(g, row + in, taps + tap, y + ow * g.out_channels());
      });
    }
  }
}

// Computes the gradient of image row r (of all images), from the output rows whose windows contain
// it.
template <class F>
void ImageGradientRow(const DepthwiseGeometry& g, int64_t r, const F* w, const F* dy, F* dx) {
  const int64_t b = r / g.h.in, ih = r % g.h.in;
  std::fill_n(dx, g.w.in * g.channels, F(0));
  for (int64_t k = 0; k < g.h.size; ++k) {
    const int64_t shifted = ih + g.h.pad_before - k * g.h.dilation;
    if (shifted < 0 || shifted % g.h.stride != 0 || shifted / g.h.stride >= g.h.out) continue;
    const F* row = dy + (b * g.h.out + shifted / g.h.stride) * g.w.out * g.out_channels();
    const F* taps = w + k * g.w.size * g.out_channels();
    for (int64_t ow = 0; ow < g.w.out; ++ow, row += g.out_channels()) {
      ForEachTap(g, ow, [&](int64_t in, int64_t tap) {
        F* to = dx + in;
        const F* from = taps + tap;
        if (g.multiplier == 1) {
#pragma GCC ivdep
          for (int64_t c = 0; c < g.channels; ++c) to[c] += row[c] * from[c];
          return;
        }
        for (int64_t c = 0, i = 0; c < g.channels; ++c) {
          for (int64_t m = 0; m < g.multiplier; ++m, ++i) to[c] += row[i] * from[i];
        }
      });
    }
  }
}

// Adds the contribution of output row r to the filter's gradient.
template <class F>
void FilterGradientRow(const DepthwiseGeometry& g, int64_t r, const F* x, const F* dy, F* dw) {
  const int64_t b = r / g.h.out, oh = r % g.h.out;
  dy += r * g.w.out * g.out_channels();
  int64_t ih = oh * g.h.stride - g.h.pad_before;
  for (int64_t k = 0; k < g.h.size; ++k, ih += g.h.dilation) {
    if (ih < 0 || ih >= g.h.in) continue;
    const F* row = x + (b * g.h.in + ih) * g.w.in * g.channels;
    F* taps = dw + k * g.w.size * g.out_channels();
    for (int64_t ow = 0; ow < g.w.out; ++ow) {
      ForEachTap(g, ow, [&](int64_t in, int64_t tap) {
        MultiplyAdd(g, row + in, dy + ow * g.out_channels(), taps + tap);
      });
    }
  }
}

class DepthwiseKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(window_, WindowAttrs::From(node.attrs));
    return OkStatus();
  }
  static StatusOr<Shape> ShapeInput(const char* what, const Tensor& input) {
    if (input.rank() != 1 || input.dim(0) != 4) {
      return InvalidArgument(what, " must be a vector of 4 sizes, is ", input.ToString());
    }
    const auto v = input.flat<int32_t>();
    return Shape::Make(Dims(v.begin(), v.end()));
  }
  static Status ExpectGradient(const Tensor& dy, const DepthwiseGeometry& g) {
    if (dy.shape() == g.output()) return OkStatus();
    return InvalidArgument("out_backprop must have the convolution's output shape ",
                           g.output().ToString(), ", has ", dy.shape().ToString());
  }
  WindowAttrs window_;
};

template <class T>
class Depthwise final : public DepthwiseKernel {
  using F = FloatOf<T>;
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const DepthwiseGeometry g,
                     DepthwiseGeometry::Of(window_, ctx.input(0).shape(), ctx.input(1).shape()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &out));
    const FloatInput<F> x(ctx.input(0)), w(ctx.input(1));
    FloatOutput<F> y(out);
    const int64_t row = g.w.out * g.out_channels();
    ctx.threads().ParallelFor(g.batch * g.h.out, g.RowNanos(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) ForwardRow<F>(g, r, x, w, y + r * row);
    });
    return OkStatus();
  }
};

template <class T>
class DepthwiseImageGradient final : public DepthwiseKernel {
  using F = FloatOf<T>;
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape image, ShapeInput("input_sizes", ctx.input(0)));
    ASSIGN_OR_RETURN(const DepthwiseGeometry g,
                     DepthwiseGeometry::Of(window_, image, ctx.input(1).shape()));
    RETURN_IF_ERROR(ExpectGradient(ctx.input(2), g));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, image, &out));
    const FloatInput<F> w(ctx.input(1)), dy(ctx.input(2));
    FloatOutput<F> dx(out);
    const int64_t row = g.w.in * g.channels;
    ctx.threads().ParallelFor(g.batch * g.h.in, g.RowNanos(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) ImageGradientRow<F>(g, r, w, dy, dx + r * row);
    });
    return OkStatus();
  }
};

template <class T>
class DepthwiseFilterGradient final : public DepthwiseKernel {
  using F = FloatOf<T>;
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape filter, ShapeInput("filter_sizes", ctx.input(1)));
    ASSIGN_OR_RETURN(const DepthwiseGeometry g,
                     DepthwiseGeometry::Of(window_, ctx.input(0).shape(), filter));
    RETURN_IF_ERROR(ExpectGradient(ctx.input(2), g));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, filter, &out));
    const FloatInput<F> x(ctx.input(0)), dy(ctx.input(2));
    // The rows are split into the same pieces on any machine. Each piece is summed separately, and
    // the sums are added up in order.
    const int64_t rows = g.batch * g.h.out, pieces = std::min<int64_t>(rows, kPieces);
    std::vector<F> parts(pieces * g.filter_size());
    ctx.threads().ParallelFor(
        pieces, g.RowNanos() * rows / kPieces, [&](int64_t begin, int64_t end) {
          for (int64_t p = begin; p < end; ++p) {
            for (int64_t r = rows * p / pieces; r < rows * (p + 1) / pieces; ++r) {
              FilterGradientRow<F>(g, r, x, dy, parts.data() + p * g.filter_size());
            }
          }
        });
    FloatOutput<F> dw(out);
    std::fill_n(dw.data(), g.filter_size(), F(0));
    for (size_t i = 0; i < parts.size(); ++i) dw[i % g.filter_size()] += parts[i];
    return OkStatus();
  }
  static constexpr int64_t kPieces = 16;
};

Status DepthwiseShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(PartialShape filter, s.WithRank(1, 4));
  ASSIGN_OR_RETURN(const WindowAttrs window, WindowAttrs::From(s.attrs()));
  if (!image.known_rank()) image = PartialShape::UnknownOfRank(4);
  if (!filter.known_rank()) filter = PartialShape::UnknownOfRank(4);
  PartialShape out = PartialShape::UnknownOfRank(4);
  out.set_dim(0, image.dim(0));
  const int64_t channels = image.dim(3) >= 0 ? image.dim(3) : filter.dim(2);
  if (channels >= 0 && filter.dim(3) >= 0) {
    const int64_t both[] = {channels, filter.dim(3)};
    ASSIGN_OR_RETURN(const int64_t product, CheckedProduct(both));
    out.set_dim(3, product);
  }
  for (int dim : {1, 2}) {
    ASSIGN_OR_RETURN(const int64_t size,
                     WindowOutput(window, dim, image.dim(dim), filter.dim(dim - 1)));
    out.set_dim(dim, size);
  }
  s.set_output(0, out);
  return OkStatus();
}

Status ShapeFromSizes(ShapeScope& s, int input) {
  std::vector<int64_t> sizes;
  PartialShape out = PartialShape::UnknownOfRank(4);
  if (s.ConstantInts(input, &sizes) && sizes.size() == 4) {
    ASSIGN_OR_RETURN(out, PartialShape::Make(sizes));
  }
  s.set_output(0, out);
  return OkStatus();
}

std::vector<AttrDef> DepthwiseAttrs() {
  return {{"strides", IntList{}},
          {"padding", OneOf{{"SAME", "VALID", "EXPLICIT"}}},
          {"explicit_paddings", IntList{}, EmptyList{}},
          {"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"},
          {"dilations", std::vector<int64_t>{1, 1, 1, 1}}};
}

Attrs ForwardAttributes(const GradientScope& g) {
  Attrs attrs;
  for (const AttrDef& attr : DepthwiseAttrs()) attrs[attr.name] = g.attrs().at(attr.name);
  return attrs;
}
Output Forward(const GradientScope& g, Output image, Output filter) {
  return Call("DepthwiseConv2dNative", {image, filter}, ForwardAttributes(g));
}
Output ImageGradient(const GradientScope& g, Output image, Output filter, Output dy) {
  return Call("DepthwiseConv2dNativeBackpropInput", {ShapeOf(image), filter, dy},
              ForwardAttributes(g));
}
Output FilterGradient(const GradientScope& g, Output image, Output filter, Output dy) {
  return Call("DepthwiseConv2dNativeBackpropFilter", {image, ShapeOf(filter), dy},
              ForwardAttributes(g));
}

// Returns two operations for each product: every element of the result is a sum over the window of
// one channel.
double WindowFlops(const PartialShape& result, const PartialShape& filter) {
  const bool known = filter.known_rank() && filter.rank() == 4;
  const PartialShape window =
      known ? PartialShape{filter.dim(0), filter.dim(1)} : PartialShape::UnknownOfRank(2);
  return 2 * Elements(result) * Elements(window);
}

Attrs ExampleAttrs(int64_t columns) {
  return {{"strides", std::vector<int64_t>{1, 2, columns, 1}}, {"padding", "SAME"}};
}
const ExampleTensor kImage = {{2, 4, 3, 2}}, kFilter = {{3, 2, 2, 2}};
const ExampleTensor kResult = {{2, 2, 3, 4}}, kResultOfEqualStrides = {{2, 2, 2, 4}};

}  // namespace

OP(DepthwiseConv2dNative) {
  return {
      .doc =
          "Convolves each channel of images separately: channel c gives the output channels "
          "[c * multiplier, (c + 1) * multiplier).",
      .inputs = {{"input", "T"}, {"filter", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = DepthwiseAttrs(),
      .shape = DepthwiseShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {ImageGradient(g, g.x(0), g.x(1), g.dy()),
                FilterGradient(g, g.x(0), g.x(1), g.dy())};
      },
      .examples = {{.inputs = {{kImage}, {kFilter}}, .attrs = ExampleAttrs(1)},
                   {.inputs = {{kImage}, {kFilter}}, .attrs = ExampleAttrs(2)}},
      .flops = [](const FlopsScope& s) { return WindowFlops(s.outputs[0], s.inputs[1]); },
  };
}
KERNEL(DepthwiseConv2dNative, Depthwise, half, bfloat16, float, double);

OP(DepthwiseConv2dNativeBackpropInput) {
  return {
      .doc = "The gradient of DepthwiseConv2dNative for its images, whose shape is `input_sizes`.",
      .inputs = {{"input_sizes", "int32"}, {"filter", "T"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = DepthwiseAttrs(),
      .shape = [](ShapeScope& s) { return ShapeFromSizes(s, 0); },
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), FilterGradient(g, g.dy(), g.x(1), g.x(2)), Forward(g, g.dy(), g.x(1))};
      },
      .examples = {{.inputs = {{{{4}, {2, 4, 3, 2}}}, {kFilter}, {kResult}},
                    .attrs = ExampleAttrs(1)},
                   {.inputs = {{{{4}, {2, 4, 3, 2}}}, {kFilter}, {kResultOfEqualStrides}},
                    .attrs = ExampleAttrs(2)}},
      .flops = [](const FlopsScope& s) { return WindowFlops(s.inputs[2], s.inputs[1]); },
  };
}
KERNEL(DepthwiseConv2dNativeBackpropInput, DepthwiseImageGradient, half, bfloat16, float, double);

OP(DepthwiseConv2dNativeBackpropFilter) {
  return {
      .doc = "The gradient of DepthwiseConv2dNative for its filter, whose shape is `filter_sizes`.",
      .inputs = {{"input", "T"}, {"filter_sizes", "int32"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = DepthwiseAttrs(),
      .shape = [](ShapeScope& s) { return ShapeFromSizes(s, 1); },
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {ImageGradient(g, g.x(0), g.dy(), g.x(2)), Gradient(), Forward(g, g.x(0), g.dy())};
      },
      .examples = {{.inputs = {{kImage}, {{{4}, {3, 2, 2, 2}}}, {kResult}},
                    .attrs = ExampleAttrs(1)},
                   {.inputs = {{kImage}, {{{4}, {3, 2, 2, 2}}}, {kResultOfEqualStrides}},
                    .attrs = ExampleAttrs(2)}},
      .flops = [](const FlopsScope& s) { return WindowFlops(s.inputs[2], s.outputs[0]); },
  };
}
KERNEL(DepthwiseConv2dNativeBackpropFilter, DepthwiseFilterGradient, half, bfloat16, float, double);

}  // namespace penstock
