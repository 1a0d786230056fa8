// SPDX-License-Identifier: Apache-2.0
//
// MaxPool over images and volumes, with its first and second gradients.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/op/registry.h"
#include "kernels/math/add.h"
#include "kernels/nn/float_view.h"
#include "kernels/nn/pool.h"

namespace penstock {
namespace {

const DTypes kVolumeTypes = {DType::kHalf, DType::kBfloat16, DType::kFloat};

const DTypes& RealWithoutWideUnsigned() {
  static const DTypes& types =
      *new DTypes{DType::kFloat, DType::kDouble, DType::kInt32,  DType::kUint8, DType::kInt16,
                  DType::kInt8,  DType::kInt64,  DType::kUint16, DType::kHalf,  DType::kBfloat16};
  return types;
}
#define POOL_TYPES \
  float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, uint16_t, half, bfloat16
#define REAL_TYPES POOL_TYPES, uint32_t, uint64_t

template <class T>
constexpr T Lowest() {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return T::FromBits(std::is_same_v<T, half> ? 0xfc00 : 0xff80);  // -infinity
  } else {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
}

template <class T>
class MaxPoolKernel final : public PoolKernel {
  Status Init(const KernelInit& node) override {
    if (!node.attrs.contains("ksize")) return PoolKernel::Init(node);
    std::vector<int64_t> sizes, strides;
    RETURN_IF_ERROR(node.Attr("ksize", &sizes));
    RETURN_IF_ERROR(node.Attr("strides", &strides));
    ASSIGN_OR_RETURN(depth_, DepthWindow(sizes, strides));
    if (depth_ == 1) return PoolKernel::Init(node);
    return WindowAttrs::From(node.attrs, /*need_strides=*/false).status();
  }

  Status Compute(KernelContext& ctx) override {
    int64_t depth = depth_;
    if (ctx.num_inputs() > 1) {
      ASSIGN_OR_RETURN(depth, DepthWindowInput(ctx.input(1), ctx.input(2)));
    }
    return depth == 1 ? PoolPixels(ctx) : PoolChannels(ctx, depth);
  }

  static Status PoolChannels(KernelContext& ctx, int64_t depth) {
    const Tensor& image = ctx.input(0);
    ASSIGN_OR_RETURN(const Shape shape, DepthwiseShape(image.shape(), depth));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    const T* x = image.template data<T>();
    T* y = out->template mutable_data<T>();
    const double nanos = 1 + static_cast<double>(depth);
    ctx.threads().ParallelFor(shape.num_elements(), nanos, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T largest = x[i * depth];
        for (int64_t c = i * depth + 1; c < (i + 1) * depth; ++c) {
          largest = (largest != largest) | (x[c] <= largest) ? largest : x[c];
        }
        y[i] = largest;
      }
    });
    return OkStatus();
  }

  Status PoolPixels(KernelContext& ctx) const {
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, ctx.input(0).shape(), 1));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &out));
    const T* x = ctx.input(0).template data<T>();
    T* y = out->template mutable_data<T>();
    const int64_t image = g.out_pixels() * g.channels;
    ctx.threads().ParallelFor(g.batch, g.ImageNanos(), [&](int64_t begin, int64_t end) {
      std::fill(y + begin * image, y + end * image, Lowest<T>());
      for (int64_t b = begin; b < end; ++b) {
        ForEachPair(g, b, [&](int64_t in, int64_t o) {
          const T* from = x + in;
          T* to = y + o;
          // If an element is NaN, the maximum is NaN.
#pragma GCC ivdep
          for (int64_t c = 0; c < g.channels; ++c) {
            to[c] = (to[c] != to[c]) | (from[c] <= to[c]) ? to[c] : from[c];
          }
        });
      }
    });
    return OkStatus();
  }

  int64_t depth_ = 1;  // channels of a window; V2 ops have an input instead
};

// A bool as wide as T, so that loops over both fill vector registers.
template <class T>
using Flag =
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

enum class Maxima { kFirst, kAll };

// For each element of y, finds the first element of x in its window that equals it (kAll: every
// such element). Computes result[x] += grad[y] or, if kSecond, result[y] = grad[x]. Has no
// branches, because the processor could not predict them.
template <class T, bool kSecond, Maxima kWhich = Maxima::kFirst>
void FollowMaxima(const PoolGeometry& g, int64_t b, const T* x, const T* y, const T* grad,
                  T* result) {
  std::vector<Flag<T>> found_already(g.channels);
  Flag<T>* const found = found_already.data();
  int64_t window = -1;
  ForEachPair(g, b, [&](int64_t in, int64_t out) {
    if (out != window) std::fill_n(found, g.channels, Flag<T>(0));
    window = out;
    const T* candidate = x + in;
    const T* maximum = y + out;
    const T* from = grad + (kSecond ? in : out);
    T* to = result + (kSecond ? out : in);
#pragma GCC ivdep
    for (int64_t c = 0; c < g.channels; ++c) {
      const bool hit = (found[c] == 0) & (candidate[c] == maximum[c]);
      if constexpr (kWhich == Maxima::kFirst) found[c] |= Flag<T>(hit);
      if constexpr (kSecond) {
        to[c] = hit ? from[c] : to[c];
      } else {
        to[c] = AddFn()(to[c], hit ? from[c] : T(0));
      }
    }
  });
}

// MaxPoolGrad passes gradients to the maxima; MaxPoolGradGrad collects gradients from the maxima.
template <class T, bool kSecond>
class MaxPoolGradientKernel : public PoolKernel {
  Status Compute(KernelContext& ctx) final {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, x.shape(), 3));
    RETURN_IF_ERROR(ExpectShape("orig_output", ctx.input(1), g.output()));
    RETURN_IF_ERROR(ExpectShape("grad", ctx.input(2), kSecond ? x.shape() : g.output()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, kSecond ? g.output() : x.shape(), &out));
    const T* px = x.template data<T>();
    const T* py = ctx.input(1).template data<T>();
    const T* grad = ctx.input(2).template data<T>();
    T* result = out->template mutable_data<T>();
    const int64_t image = g.batch == 0 ? 0 : out->num_elements() / g.batch;
    ctx.threads().ParallelFor(g.batch, 2 * g.ImageNanos(), [&](int64_t begin, int64_t end) {
      std::fill(result + begin * image, result + end * image, T(0));
      for (int64_t b = begin; b < end; ++b) FollowMaxima<T, kSecond>(g, b, px, py, grad, result);
    });
    return OkStatus();
  }
};
template <class T>
class MaxPoolGradKernel final : public MaxPoolGradientKernel<T, false> {};
template <class T>
class MaxPoolGradGradKernel final : public MaxPoolGradientKernel<T, true> {};

// In volumes, every maximum of a window gets the gradient, as in TensorFlow (in images only the
// first one does).
class MaxPool3DGradKernel final : public PoolKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, x.shape(), 3));
    RETURN_IF_ERROR(ExpectShape("orig_output", ctx.input(1), g.output()));
    RETURN_IF_ERROR(ExpectShape("grad", ctx.input(2), g.output()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &out));
    const FloatInput<float> px(x), py(ctx.input(1)), grad(ctx.input(2));
    FloatOutput<float> result(out);
    const int64_t image = g.in_pixels() * g.channels;
    ctx.threads().ParallelFor(g.batch, 2 * g.ImageNanos(), [&](int64_t begin, int64_t end) {
      std::fill(result + begin * image, result + end * image, 0.f);
      for (int64_t b = begin; b < end; ++b) {
        FollowMaxima<float, false, Maxima::kAll>(g, b, px, py, grad, result);
      }
    });
    return OkStatus();
  }
};
template <class>
using MaxPool3DGradOf = MaxPool3DGradKernel;

Status GradGradShape(ShapeScope& s) {
  s.set_output(0, s.input(1));
  return OkStatus();
}

}  // namespace

OP(MaxPool) {
  return {
      .doc =
          "Returns the largest element in a window that slides over height and width, or of "
          "groups of neighbouring channels: then ksize and strides are [1, 1, 1, k], the number "
          "of channels is a multiple of k, and there is no gradient. Unimplemented for other "
          "windows, InvalidArgument for sizes that are not positive.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
      .attrs = PoolAttrs(PoolPadding::kExplicitToo),
      .shape = MaxPoolShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MaxPoolGrad", {g.x(), g.y(), g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2}}}}, .attrs = ExampleWindow()},
                   {.inputs = {{{{1, 2, 2, 4}}}},
                    .attrs = {{"ksize", std::vector<int64_t>{1, 1, 1, 2}},
                              {"strides", std::vector<int64_t>{1, 1, 1, 2}},
                              {"padding", "VALID"}},
                    .check_gradient = false}},
  };
}
KERNEL(MaxPool, MaxPoolKernel, POOL_TYPES);

OP(MaxPoolGrad) {
  return {
      .doc = "The gradient of MaxPool: `grad` flows to the first maximum of each window.",
      .inputs = {{"orig_input", "T"}, {"orig_output", "T"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
      .attrs = PoolAttrs(PoolPadding::kExplicitToo),
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), Gradient(),
                Call("MaxPoolGradGrad", {g.x(0), g.x(1), g.dy()}, WindowAttributes(g))};
      },
      .examples =
          {{.inputs = {{{{1, 2, 2, 1}, {1, 5, 3, 2}}}, {{{1, 1, 1, 1}, {5}}}, {{{1, 1, 1, 1}}}},
            .attrs = {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                      {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                      {"padding", "VALID"}}}},
  };
}
KERNEL(MaxPoolGrad, MaxPoolGradKernel, POOL_TYPES);

OP(MaxPoolGradGrad) {
  return {
      .doc = "The gradient of MaxPoolGrad: collects `grad` from the first maximum of each window.",
      .inputs = {{"orig_input", "T"}, {"orig_output", "T"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", RealWithoutWideUnsigned()}},
      .attrs = PoolAttrs(PoolPadding::kAutomatic),
      .shape = GradGradShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), Gradient(),
                Call("MaxPoolGrad", {g.x(0), g.x(1), g.dy()}, WindowAttributes(g))};
      },
      .examples =
          {{.inputs = {{{{1, 2, 2, 1}, {1, 5, 3, 2}}}, {{{1, 1, 1, 1}, {5}}}, {{{1, 2, 2, 1}}}},
            .attrs = {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                      {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                      {"padding", "VALID"}}}},
  };
}
KERNEL(MaxPoolGradGrad, MaxPoolGradGradKernel, POOL_TYPES);

OP(MaxPoolV2) {
  return {
      .doc = "The same as MaxPool, with ksize and strides as inputs.",
      .inputs = {{"input", "T"}, {"ksize", "int32"}, {"strides", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
      .attrs = PoolV2Attrs(),
      .shape = MaxPoolShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MaxPoolGradV2", {g.x(0), g.y(), g.dy(), g.x(1), g.x(2)}, WindowAttributes(g)),
                Gradient(), Gradient()};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2}}}, {{{4}, {1, 2, 2, 1}}}, {{{4}, {1, 2, 1, 1}}}},
                    .attrs = {{"padding", "SAME"}}}},
  };
}
KERNEL(MaxPoolV2, MaxPoolKernel, POOL_TYPES);

OP(MaxPoolGradV2) {
  return {
      .doc = "The same as MaxPoolGrad, with ksize and strides as inputs.",
      .inputs = {{"orig_input", "T"},
                 {"orig_output", "T"},
                 {"grad", "T"},
                 {"ksize", "int32"},
                 {"strides", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
      .attrs = PoolV2Attrs(),
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), Gradient(),
                Call("MaxPoolGradGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)},
                     WindowAttributes(g)),
                Gradient(), Gradient()};
      },
      .examples = {{.inputs = {{{{1, 2, 2, 1}, {1, 5, 3, 2}}},
                               {{{1, 1, 1, 1}, {5}}},
                               {{{1, 1, 1, 1}}},
                               {{{4}, {1, 2, 2, 1}}},
                               {{{4}, {1, 2, 2, 1}}}},
                    .attrs = {{"padding", "VALID"}}}},
  };
}
KERNEL(MaxPoolGradV2, MaxPoolGradKernel, POOL_TYPES);

OP(MaxPoolGradGradV2) {
  return {
      .doc = "The same as MaxPoolGradGrad, with ksize and strides as inputs.",
      .inputs = {{"orig_input", "T"},
                 {"orig_output", "T"},
                 {"grad", "T"},
                 {"ksize", "int32"},
                 {"strides", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
      .attrs = PoolV2Attrs(),
      .shape = GradGradShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {
            Gradient(), Gradient(),
            Call("MaxPoolGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)}, WindowAttributes(g)),
            Gradient(), Gradient()};
      },
      .examples = {{.inputs = {{{{1, 2, 2, 1}, {1, 5, 3, 2}}},
                               {{{1, 1, 1, 1}, {5}}},
                               {{{1, 2, 2, 1}}},
                               {{{4}, {1, 2, 2, 1}}},
                               {{{4}, {1, 2, 2, 1}}}},
                    .attrs = {{"padding", "VALID"}}}},
  };
}
KERNEL(MaxPoolGradGradV2, MaxPoolGradGradKernel, POOL_TYPES);

OP(MaxPool3D) {
  return {
      .doc =
          "Returns the largest element in a window that slides over depth, height and "
          "width.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kVolumeTypes}},
      .attrs = Pool3DAttrs(),
      .shape = PoolShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MaxPool3DGrad", {g.x(), g.y(), g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2, 2}}}}, .attrs = ExampleWindow3D()}},
  };
}
KERNEL(MaxPool3D, MaxPoolKernel, half, bfloat16, float);

OP(MaxPool3DGrad) {
  return {
      .doc = "The gradient of MaxPool3D: `grad` flows to every maximum of each window.",
      .inputs = {{"orig_input", "TInput"}, {"orig_output", "TInput"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kVolumeTypes, DType::kFloat}, {"TInput", kVolumeTypes, DType::kFloat}},
      .attrs = Pool3DAttrs(),
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), Gradient(),
                Call("MaxPool3DGradGrad", {g.x(0), g.x(1), g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2, 2}}}, {{{1, 3, 2, 2, 2}}}, {{{1, 3, 2, 2, 2}}}},
                    .attrs = ExampleWindow3D()}},
  };
}
KERNEL(MaxPool3DGrad, MaxPool3DGradOf, half, bfloat16, float);

OP(MaxPool3DGradGrad) {
  return {
      .doc =
          "The gradient of MaxPool3DGrad: collects `grad` from the first maximum of each "
          "window.",
      .inputs = {{"orig_input", "T"}, {"orig_output", "T"}, {"grad", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kReal}},
      .attrs = Pool3DAttrs(),
      .shape = GradGradShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), Gradient(),
                Call("MaxPool3DGrad", {g.x(0), g.x(1), g.dy()}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2, 2}}}, {{{1, 3, 2, 2, 2}}}, {{{1, 3, 4, 2, 2}}}},
                    .attrs = ExampleWindow3D(),
                    // The example's orig_output does not hold the maxima.
                    .check_gradient = false}},
  };
}
KERNEL(MaxPool3DGradGrad, MaxPoolGradGradKernel, REAL_TYPES);

}  // namespace penstock
