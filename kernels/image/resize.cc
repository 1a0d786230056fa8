// SPDX-License-Identifier: Apache-2.0
//
// ResizeBilinear, ResizeBicubic and ResizeArea, with gradients. The ops resize columns first, then
// rows; their gradients process rows first, then columns. A table (Taps) has the input elements and
// weights of each output element.
#include <algorithm>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/elements.h"
#include "kernels/image/pixels.h"
#include "kernels/image/resize_kernel.h"
#include "kernels/image/taps.h"

namespace penstock {
namespace {

// Computes pixel o: to[c] is the weighted sum of from[tap, c] over the pixel's taps. Pixels have
// `n` numbers.
void Combine(const Taps& taps, int64_t o, const float* from, int64_t n, float* to) {
  const int32_t* index = taps.index.data() + o * taps.count;
  const float* weight = taps.weight.data() + o * taps.count;
  if (taps.count == 2) {  // this formula keeps constant images exactly constant
    const float *a = from + index[0] * n, *b = from + index[1] * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = a[i] + (b[i] - a[i]) * weight[1];
    return;
  }
  std::fill_n(to, n, 0.f);
  for (int64_t k = 0; k < taps.count; ++k) {
    const float* row = from + index[k] * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] += row[i] * weight[k];
  }
}

// Adds as the transpose of Combine does: to[tap, c] += weight * from[c] for each tap of pixel o.
void Scatter(const Taps& taps, int64_t o, const float* from, int64_t n, float* to) {
  for (int64_t k = o * taps.count; k < (o + 1) * taps.count; ++k) {
    float* row = to + taps.index[k] * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) row[i] += from[i] * taps.weight[k];
  }
}

using MakeTaps = Taps (*)(const ResizeGrid&);

template <MakeTaps kTaps>
class Resize final : public ResizeKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("images", images.shape()));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("size", ctx.input(1)));
    const int64_t wanted[] = {in.batch, size[0], size[1], in.channels};
    const int64_t scratch[] = {in.height, size[1], in.channels, 4};
    RETURN_IF_ERROR(CheckedProduct(wanted).status());
    RETURN_IF_ERROR(CheckedProduct(scratch).status());
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape(wanted), &out));
    if (out->num_elements() == 0) return OkStatus();  // height or width may be huge
    const Taps rows = kTaps(Grid(in.height, size[0])), columns = kTaps(Grid(in.width, size[1]));
    const int64_t width = size[1] * in.channels;
    std::vector<char> needed(in.height);
    for (int32_t row : rows.index) needed[row] = 1;
    ASSIGN_OR_RETURN(Tensor narrowed, ctx.Temporary(DType::kFloat, Shape({in.height, width})));
    float* const middle = narrowed.mutable_data<float>();
    float* const y = out->mutable_data<float>();
    const auto row_ns = [width](const Taps& taps) { return 0.5 * width * taps.count; };
    for (int64_t b = 0; b < in.batch; ++b) {
      ctx.threads().ParallelFor(in.height, row_ns(columns), [&](int64_t begin, int64_t end) {
        std::vector<float> line(in.row());
        for (int64_t r = begin; r < end; ++r) {
          if (!needed[r]) continue;
          ToFloats(images, b * in.image() + r * in.row(), line.data(), in.row());
          for (int64_t o = 0; o < size[1]; ++o) {
            Combine(columns, o, line.data(), in.channels, middle + r * width + o * in.channels);
          }
        }
      });
      ctx.threads().ParallelFor(size[0], row_ns(rows), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          Combine(rows, o, middle, width, y + (b * size[0] + o) * width);
        }
      });
    }
    return OkStatus();
  }
};

// Inputs: grads, and the images, of which only the shape is used.
template <MakeTaps kTaps>
class ResizeGradient final : public ResizeKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    ASSIGN_OR_RETURN(const GradientImages images, GradientImages::Of(ctx));
    const ImageBatch &from = images.from, &to = images.to;
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(1).shape(), &out));
    if (grads.num_elements() == 0 || out->num_elements() == 0) {  // height or width may be huge
      ZeroElements(out->dtype(), out->mutable_raw_data(), out->num_elements());
      return OkStatus();
    }
    const Taps rows = kTaps(Grid(to.height, from.height)),
               columns = kTaps(Grid(to.width, from.width));
    const double image_ns = 0.5 * static_cast<double>(from.image() * rows.count +
                                                      to.height * from.row() * columns.count);
    ctx.threads().ParallelFor(to.batch, image_ns, [&](int64_t begin, int64_t end) {
      std::vector<float> middle(to.height * from.row()), line(to.row());
      for (int64_t b = begin; b < end; ++b) {
        std::fill(middle.begin(), middle.end(), 0.f);
        for (int64_t o = 0; o < from.height; ++o) {
          Scatter(rows, o, grads.data<float>() + b * from.image() + o * from.row(), from.row(),
                  middle.data());
        }
        for (int64_t r = 0; r < to.height; ++r) {
          std::fill(line.begin(), line.end(), 0.f);
          for (int64_t o = 0; o < from.width; ++o) {
            Scatter(columns, o, middle.data() + r * from.row() + o * from.channels, to.channels,
                    line.data());
          }
          FromFloats(line.data(), out, b * to.image() + r * to.row(), to.row());
        }
      }
    });
    return OkStatus();
  }
};

template <class>
using Bilinear = Resize<BilinearTaps>;
template <class>
using BilinearGrad = ResizeGradient<BilinearTaps>;
template <class>
using Bicubic = Resize<BicubicTaps>;
template <class>
using BicubicGrad = ResizeGradient<BicubicTaps>;
template <class>
using Area = Resize<AreaTaps>;

Status LikeOriginal(ShapeScope& s) {
  s.set_output(0, s.input(1));
  return OkStatus();
}

// Returns the gradient of the images, which `op` computes; integer images get none.
std::vector<Gradient> ResizedBack(const GradientScope& g, const char* op) {
  if (!IsFloating(g.dtype())) return {Gradient(), Gradient()};
  return {Call(op, {g.dy(), g.x(0)}, GridAttributes(g)), Gradient()};
}
const DTypes kPixelTypes = {DType::kInt8,  DType::kUint8, DType::kInt16,    DType::kUint16,
                            DType::kInt32, DType::kInt64, DType::kBfloat16, DType::kHalf,
                            DType::kFloat, DType::kDouble};
#define PIXEL_TYPES \
  int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, bfloat16, half, float, double

OpDef ResizeDef(const char* doc) {
  // The examples are not checked by central differences: the results are floats, and the small
  // steps used for doubles would be lost to rounding.
  return {.doc = doc,
          .inputs = {{"images", "T"}, {"size", "int32"}},
          .outputs = {{"resized_images", "float"}},
          .types = {{"T", kPixelTypes}},
          .attrs = GridAttrs(),
          .shape = [](ShapeScope& s) { return SizedShape(s, 1); },
          .examples = {{.inputs = {{{{1, 3, 4, 2}}}, {{{2}, {5, 2}}}}, .check_gradient = false},
                       {.inputs = {{{{1, 3, 4, 2}}}, {{{2}, {2, 6}}}},
                        .attrs = {{"half_pixel_centers", true}},
                        .check_gradient = false}}};
}
OpDef Differentiable(OpDef def, const char* gradient_op) {
  def.gradient = [gradient_op](const GradientScope& g) { return ResizedBack(g, gradient_op); };
  return def;
}
OpDef GradientDef(const char* doc, const char* op, DTypes types) {
  return {.doc = doc,
          .inputs = {{"grads", "float"}, {"original_image", "T"}},
          .outputs = {{"output", "T"}},
          .types = {{"T", types}},
          .attrs = GridAttrs(),
          .shape = LikeOriginal,
          // The resizing op is linear, so the gradient of its gradient op is the resizing op.
          .gradient = [op](const GradientScope& g) { return ResizedBySize(g, op); },
          .examples = {{.inputs = {{{{1, 5, 2, 2}}}, {{{1, 3, 4, 2}}}}, .check_gradient = false}}};
}
OpDef AreaDef() {
  OpDef def =
      ResizeDef("Resizes images. Each output pixel is the mean of the area that it covers.");
  def.attrs = {{"align_corners", false}};
  def.examples.pop_back();
  return def;
}

}  // namespace

OP(ResizeBilinear) {
  return Differentiable(ResizeDef("Resizes images by linear interpolation between the four nearest "
                                  "pixels."),
                        "ResizeBilinearGrad");
}
KERNEL(ResizeBilinear, Bilinear, PIXEL_TYPES);
OP(ResizeBilinearGrad) {
  return GradientDef("The gradient of ResizeBilinear.", "ResizeBilinear", kFloating);
}
KERNEL(ResizeBilinearGrad, BilinearGrad, half, bfloat16, float, double);

OP(ResizeBicubic) {
  return Differentiable(ResizeDef("Resizes images by cubic interpolation between sixteen pixels."),
                        "ResizeBicubicGrad");
}
KERNEL(ResizeBicubic, Bicubic, PIXEL_TYPES);
OP(ResizeBicubicGrad) {
  return GradientDef("The gradient of ResizeBicubic.", "ResizeBicubic",
                     {DType::kFloat, DType::kDouble});
}
KERNEL(ResizeBicubicGrad, BicubicGrad, float, double);

OP(ResizeArea) { return AreaDef(); }
KERNEL(ResizeArea, Area, PIXEL_TYPES);

}  // namespace penstock
