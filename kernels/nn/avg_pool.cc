// SPDX-License-Identifier: Apache-2.0
//
// AvgPool over images and volumes, with its gradient.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/op/registry.h"
#include "kernels/nn/pool.h"

namespace penstock {
namespace {

// Returns the number of input elements in the window at output o. Padding is not part of an
// average.
int64_t Covered(const Window& w, int64_t o) {
  const int64_t first = o * w.stride - w.pad_before;
  return std::min(first + w.size, w.in) - std::max<int64_t>(first, 0);
}
// Returns the number of input pixels in the window at output pixel p of an image.
int64_t Covered(const PoolGeometry& g, int64_t p) {
  return Covered(g.d, p / (g.h.out * g.w.out)) * Covered(g.h, p / g.w.out % g.h.out) *
         Covered(g.w, p % g.w.out);
}

template <class T>
using PoolSum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
class AvgPoolKernel final : public PoolKernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, ctx.input(0).shape(), 1));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &out));
    if (out->num_elements() == 0) return OkStatus();
    const T* x = ctx.input(0).template data<T>();
    T* y = out->template mutable_data<T>();
    const int64_t image = g.out_pixels() * g.channels;
    ctx.threads().ParallelFor(g.batch, g.ImageNanos(), [&](int64_t begin, int64_t end) {
      std::vector<PoolSum<T>> sums(image);
      for (int64_t b = begin; b < end; ++b) {
        std::fill(sums.begin(), sums.end(), PoolSum<T>(0));
        PoolSum<T>* sum = sums.data() - b * image;
        ForEachPair(g, b, [&](int64_t in, int64_t o) {
          for (int64_t c = 0; c < g.channels; ++c) sum[o + c] += PoolSum<T>(x[in + c]);
        });
        for (int64_t p = 0; p < g.out_pixels(); ++p) {
          const auto n = PoolSum<T>(Covered(g, p));
          for (int64_t i = p * g.channels; i < (p + 1) * g.channels; ++i) {
            y[b * image + i] = T(sums[i] / n);
          }
        }
      }
    });
    return OkStatus();
  }
};

template <class T>
class AvgPoolGradKernel final : public PoolKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& sizes = ctx.input(0);
    if (sizes.rank() != 1) {
      return InvalidArgument("orig_input_shape must be a vector, is ", sizes.ToString());
    }
    const auto numbers = sizes.flat<int32_t>();
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims(numbers.begin(), numbers.end())));
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, shape, 2));
    RETURN_IF_ERROR(ExpectShape("grad", ctx.input(1), g.output()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    const T* dy = ctx.input(1).template data<T>();
    T* dx = out->template mutable_data<T>();
    const int64_t in_image = g.in_pixels() * g.channels;
    ctx.threads().ParallelFor(g.batch, 2 * g.ImageNanos(), [&](int64_t begin, int64_t end) {
      std::vector<PoolSum<T>> sums(in_image);
      for (int64_t b = begin; b < end; ++b) {
        std::fill(sums.begin(), sums.end(), PoolSum<T>(0));
        PoolSum<T>* sum = sums.data() - b * in_image;
        ForEachPair(g, b, [&](int64_t in, int64_t o) {
          const auto n = PoolSum<T>(Covered(g, o / g.channels - b * g.out_pixels()));
          for (int64_t c = 0; c < g.channels; ++c) sum[in + c] += PoolSum<T>(dy[o + c]) / n;
        });
        std::transform(sums.begin(), sums.end(), dx + b * in_image,
                       [](PoolSum<T> s) { return T(s); });
      }
    });
    return OkStatus();
  }
};

Status AvgPoolGradShape(ShapeScope& s) {
  std::vector<int64_t> sizes;
  if (!s.ConstantInts(0, &sizes)) {
    s.set_output(0, PartialShape::UnknownOfRank(s.attr<std::string>("data_format").size()));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const PartialShape shape, PartialShape::Make(sizes));
  s.set_output(0, shape);
  return OkStatus();
}

}  // namespace

OP(AvgPool) {
  return {
      .doc =
          "Averages over a window that slides over height and width. Padding is not part of an "
          "average.",
      .inputs = {{"value", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = PoolAttrs(PoolPadding::kAutomatic),
      .shape = PoolShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("AvgPoolGrad", {ShapeOf(g.x()), g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2}}}}, .attrs = ExampleWindow()}},
  };
}
KERNEL(AvgPool, AvgPoolKernel, half, bfloat16, float, double);

OP(AvgPoolGrad) {
  return {
      .doc = "The gradient of AvgPool: spreads `grad` evenly over each window.",
      .inputs = {{"orig_input_shape", "int32"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = PoolAttrs(PoolPadding::kAutomatic),
      .shape = AvgPoolGradShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), Call("AvgPool", {g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{4}, {1, 3, 4, 2}}}, {{{1, 2, 4, 2}}}}, .attrs = ExampleWindow()}},
  };
}
KERNEL(AvgPoolGrad, AvgPoolGradKernel, half, bfloat16, float, double);

OP(AvgPool3D) {
  return {
      .doc =
          "Averages over a window that slides over depth, height and width. Padding is not part of "
          "an average.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = Pool3DAttrs(),
      .shape = PoolShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("AvgPool3DGrad", {ShapeOf(g.x()), g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2, 2}}}}, .attrs = ExampleWindow3D()}},
  };
}
KERNEL(AvgPool3D, AvgPoolKernel, half, bfloat16, float, double);

OP(AvgPool3DGrad) {
  return {
      .doc = "The gradient of AvgPool3D: spreads `grad` evenly over each window.",
      .inputs = {{"orig_input_shape", "int32"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = Pool3DAttrs(),
      .shape = AvgPoolGradShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), Call("AvgPool3D", {g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{5}, {1, 3, 4, 2, 2}}}, {{{1, 3, 2, 2, 2}}}},
                    .attrs = ExampleWindow3D()}},
  };
}
KERNEL(AvgPool3DGrad, AvgPoolGradKernel, half, bfloat16, float, double);

}  // namespace penstock
