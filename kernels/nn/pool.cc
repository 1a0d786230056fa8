// SPDX-License-Identifier: Apache-2.0
//
// MaxPool and AvgPool over the height and width of NHWC images, with their gradients.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/window.h"

namespace penstock {
namespace {

const DTypes& RealWithoutWideUnsigned() {
  static const DTypes& types =
      *new DTypes{DType::kFloat, DType::kDouble, DType::kInt32,  DType::kUint8, DType::kInt16,
                  DType::kInt8,  DType::kInt64,  DType::kUint16, DType::kHalf,  DType::kBfloat16};
  return types;
}
#define POOL_TYPES \
  float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, uint16_t, half, bfloat16

struct PoolGeometry {
  int64_t batch = 0, channels = 0;
  Window h, w;
  Shape output() const { return Shape({batch, h.out, w.out, channels}); }
};

// What all pooling kernels share: where the window's size and steps come from.
class PoolKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    from_inputs_ = node.attrs.count("ksize") == 0;  // V2: as inputs
    ASSIGN_OR_RETURN(window_, WindowAttrs::From(node.attrs, !from_inputs_));
    if (from_inputs_) return OkStatus();
    RETURN_IF_ERROR(node.Attr("ksize", &sizes_));
    return CheckSpatial("ksize", sizes_);
  }

  // `sizes_input`: the input that holds ksize, followed by strides (V2).
  StatusOr<PoolGeometry> Geometry(const KernelContext& ctx, const Shape& image,
                                  int sizes_input) const {
    if (image.rank() != 4) {
      return InvalidArgument("input must be a batch of images [batch, height, width, channels], ",
                             "has shape ", image.ToString());
    }
    std::vector<int64_t> sizes = sizes_;
    WindowAttrs window = window_;
    if (from_inputs_) {
      RETURN_IF_ERROR(Read(ctx.input(sizes_input), "ksize", &sizes));
      RETURN_IF_ERROR(Read(ctx.input(sizes_input + 1), "strides", &window.strides));
    }
    PoolGeometry g{.batch = image.dim(0), .channels = image.dim(3)};
    ASSIGN_OR_RETURN(g.h, window.Over(1, image.dim(1), sizes[1]));
    ASSIGN_OR_RETURN(g.w, window.Over(2, image.dim(2), sizes[2]));
    return g;
  }

  static Status Read(const Tensor& input, const char* what, std::vector<int64_t>* values) {
    if (input.dtype() != DType::kInt32 || input.rank() != 1) {
      return InvalidArgument(what, " must be a vector of int32, is ", input.ToString());
    }
    const auto numbers = input.flat<int32_t>();
    values->assign(numbers.begin(), numbers.end());
    return CheckSpatial(what, *values);
  }

  static Status ExpectShape(const char* what, const Tensor& tensor, const Shape& shape) {
    if (tensor.shape() == shape) return OkStatus();
    return InvalidArgument(what, " must have shape ", shape.ToString(), ", has ",
                           tensor.shape().ToString());
  }

 private:
  WindowAttrs window_;
  std::vector<int64_t> sizes_;
  bool from_inputs_ = false;
};

// Calls visit(input offset, output offset) for each pair of pixels that meet in image b; offsets
// count elements and lie at channel 0.
template <class Visit>
void ForEachPair(const PoolGeometry& g, int64_t b, const Visit& visit) {
  for (int64_t oh = 0; oh < g.h.out; ++oh) {
    for (int64_t ow = 0; ow < g.w.out; ++ow) {
      const int64_t out = ((b * g.h.out + oh) * g.w.out + ow) * g.channels;
      for (int64_t kh = 0; kh < g.h.size; ++kh) {
        const int64_t ih = oh * g.h.stride - g.h.pad_before + kh;
        if (ih < 0 || ih >= g.h.in) continue;
        for (int64_t kw = 0; kw < g.w.size; ++kw) {
          const int64_t iw = ow * g.w.stride - g.w.pad_before + kw;
          if (iw < 0 || iw >= g.w.in) continue;
          visit(((b * g.h.in + ih) * g.w.in + iw) * g.channels, out);
        }
      }
    }
  }
}

double ImageNanos(const PoolGeometry& g) {
  return 0.3 * static_cast<double>(g.h.out * g.w.out * g.h.size * g.w.size * g.channels) + 100;
}

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
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, ctx.input(0).shape(), 1));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &out));
    const T* x = ctx.input(0).template data<T>();
    T* y = out->template mutable_data<T>();
    const int64_t image = g.h.out * g.w.out * g.channels;
    ctx.threads().ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
      std::fill(y + begin * image, y + end * image, Lowest<T>());
      for (int64_t b = begin; b < end; ++b) {
        ForEachPair(g, b, [&](int64_t in, int64_t o) {
          const T* from = x + in;
          T* to = y + o;
          // NaN wins over every number.
#pragma GCC ivdep
          for (int64_t c = 0; c < g.channels; ++c) {
            to[c] = (to[c] != to[c]) | (from[c] <= to[c]) ? to[c] : from[c];
          }
        });
      }
    });
    return OkStatus();
  }
};

// A truth value as wide as T, so that loops over both fill vector registers.
template <class T>
using Flag =
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// For each element of y the first element of x in its window that equals it: result[x] += grad[y],
// or, the other way, result[y] = grad[x]. Without branches: which element it is cannot be foreseen.
template <class T, bool kSecond>
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
      found[c] |= Flag<T>(hit);
      if constexpr (kSecond) {
        to[c] = hit ? from[c] : to[c];
      } else {
        to[c] += hit ? from[c] : T(0);
      }
    }
  });
}

// MaxPoolGrad routes gradients to the maxima; MaxPoolGradGrad collects them from there.
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
    ctx.threads().ParallelFor(g.batch, 2 * ImageNanos(g), [&](int64_t begin, int64_t end) {
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

// How many input elements the window has at output o: padding does not count in an average.
int64_t Covered(const Window& w, int64_t o) {
  const int64_t first = o * w.stride - w.pad_before;
  return std::min(first + w.size, w.in) - std::max<int64_t>(first, 0);
}

template <class T>
using PoolSum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
class AvgPoolKernel final : public PoolKernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, ctx.input(0).shape(), 1));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &out));
    const T* x = ctx.input(0).template data<T>();
    T* y = out->template mutable_data<T>();
    const int64_t image = g.h.out * g.w.out * g.channels;
    ctx.threads().ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
      std::vector<PoolSum<T>> sums(image);
      for (int64_t b = begin; b < end; ++b) {
        std::fill(sums.begin(), sums.end(), PoolSum<T>(0));
        PoolSum<T>* sum = sums.data() - b * image;
        ForEachPair(g, b, [&](int64_t in, int64_t o) {
          for (int64_t c = 0; c < g.channels; ++c) sum[o + c] += PoolSum<T>(x[in + c]);
        });
        for (int64_t p = 0; p < g.h.out * g.w.out; ++p) {
          const auto n = PoolSum<T>(Covered(g.h, p / g.w.out) * Covered(g.w, p % g.w.out));
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
    if (sizes.rank() != 1 || sizes.num_elements() != 4) {
      return InvalidArgument("orig_input_shape must be 4 numbers, is ", sizes.ToString());
    }
    const auto numbers = sizes.flat<int32_t>();
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims(numbers.begin(), numbers.end())));
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, shape, 2));
    RETURN_IF_ERROR(ExpectShape("grad", ctx.input(1), g.output()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    const T* dy = ctx.input(1).template data<T>();
    T* dx = out->template mutable_data<T>();
    const int64_t in_image = g.h.in * g.w.in * g.channels;
    ctx.threads().ParallelFor(g.batch, 2 * ImageNanos(g), [&](int64_t begin, int64_t end) {
      std::vector<PoolSum<T>> sums(in_image);
      for (int64_t b = begin; b < end; ++b) {
        std::fill(sums.begin(), sums.end(), PoolSum<T>(0));
        PoolSum<T>* sum = sums.data() - b * in_image;
        ForEachPair(g, b, [&](int64_t in, int64_t o) {
          const int64_t pixel = o / g.channels - b * g.h.out * g.w.out;
          const auto n = PoolSum<T>(Covered(g.h, pixel / g.w.out) * Covered(g.w, pixel % g.w.out));
          for (int64_t c = 0; c < g.channels; ++c) sum[in + c] += PoolSum<T>(dy[o + c]) / n;
        });
        std::transform(sums.begin(), sums.end(), dx + b * in_image,
                       [](PoolSum<T> s) { return T(s); });
      }
    });
    return OkStatus();
  }
};

// The shape of a pooled image, for a window from attributes or from constant inputs (V2).
Status PoolShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(0, 4));
  const bool v2 = s.attrs().count("ksize") == 0;
  ASSIGN_OR_RETURN(WindowAttrs window, WindowAttrs::From(s.attrs(), !v2));
  std::vector<int64_t> sizes;
  PartialShape out = PartialShape::UnknownOfRank(4);
  if (!image.known_rank()) image = PartialShape::UnknownOfRank(4);
  out.set_dim(0, image.dim(0));
  out.set_dim(3, image.dim(3));
  if (v2) {
    if (!s.ConstantInts(1, &sizes) || !s.ConstantInts(2, &window.strides)) {
      s.set_output(0, out);
      return OkStatus();
    }
    RETURN_IF_ERROR(CheckSpatial("strides", window.strides));
  } else {
    sizes = s.attr<std::vector<int64_t>>("ksize");
  }
  RETURN_IF_ERROR(CheckSpatial("ksize", sizes));
  for (int dim : {1, 2}) {
    ASSIGN_OR_RETURN(const int64_t size, WindowOutput(window, dim, image.dim(dim), sizes[dim]));
    out.set_dim(dim, size);
  }
  s.set_output(0, out);
  return OkStatus();
}

Status GradGradShape(ShapeScope& s) {
  s.set_output(0, s.input(1));
  return OkStatus();
}

Status AvgPoolGradShape(ShapeScope& s) {
  std::vector<int64_t> sizes;
  if (!s.ConstantInts(0, &sizes)) {
    s.set_output(0, PartialShape::UnknownOfRank(4));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const PartialShape shape, PartialShape::Make(sizes));
  s.set_output(0, shape);
  return OkStatus();
}

// The attributes of the forward op that its gradient op takes over.
Attrs WindowAttributes(const GradientScope& g) {
  Attrs attrs;
  for (const char* name : {"ksize", "strides", "padding", "explicit_paddings", "data_format"}) {
    const auto it = g.attrs().find(name);
    if (it != g.attrs().end()) attrs[name] = it->second;
  }
  return attrs;
}

// Attributes of the pooling ops: those whose window is fixed, and those that take it as inputs.
std::vector<AttrDef> PoolAttrs(bool explicit_padding) {
  std::vector<AttrDef> attrs = {{"ksize", IntList{4}},
                                {"strides", IntList{4}},
                                {"padding", OneOf{{"SAME", "VALID"}}},
                                {"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"}};
  if (explicit_padding) {
    attrs[2] = {"padding", OneOf{{"SAME", "VALID", "EXPLICIT"}}};
    attrs.push_back({"explicit_paddings", IntList{}, EmptyList{}});
  }
  return attrs;
}
std::vector<AttrDef> PoolV2Attrs() {
  return {{"padding", OneOf{{"SAME", "VALID"}}}, {"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"}};
}

Attrs ExampleWindow() {
  return {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
          {"strides", std::vector<int64_t>{1, 2, 1, 1}},
          {"padding", "SAME"}};
}

}  // namespace

OP(MaxPool, {
                .doc = "The largest element under a window that slides over height and width.",
                .inputs = {{"input", "T"}},
                .outputs = {{"output", "T"}},
                .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
                .attrs = PoolAttrs(true),
                .shape = PoolShape,
                .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
                  return {Call("MaxPoolGrad", {g.x(), g.y(), g.dy()}, WindowAttributes(g))};
                },
                .examples = {{.inputs = {{{{1, 3, 4, 2}}}}, .attrs = ExampleWindow()}},
            });
KERNEL(MaxPool, MaxPoolKernel, POOL_TYPES);

OP(MaxPoolGrad,
   {
       .doc = "The gradient of MaxPool: `grad` goes to the first maximum of each window.",
       .inputs = {{"orig_input", "T"}, {"orig_output", "T"}, {"grad", "T"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
       .attrs = PoolAttrs(true),
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
   });
KERNEL(MaxPoolGrad, MaxPoolGradKernel, POOL_TYPES);

OP(MaxPoolGradGrad,
   {
       .doc = "The gradient of MaxPoolGrad: collects `grad` from the first maximum of each window.",
       .inputs = {{"orig_input", "T"}, {"orig_output", "T"}, {"grad", "T"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", RealWithoutWideUnsigned()}},
       .attrs = PoolAttrs(false),
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
   });
KERNEL(MaxPoolGradGrad, MaxPoolGradGradKernel, POOL_TYPES);

OP(MaxPoolV2,
   {
       .doc = "MaxPool with the window as inputs.",
       .inputs = {{"input", "T"}, {"ksize", "int32"}, {"strides", "int32"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", RealWithoutWideUnsigned(), DType::kFloat}},
       .attrs = PoolV2Attrs(),
       .shape = PoolShape,
       .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
         return {
             Call("MaxPoolGradV2", {g.x(0), g.y(), g.dy(), g.x(1), g.x(2)}, WindowAttributes(g)),
             Gradient(), Gradient()};
       },
       .examples = {{.inputs = {{{{1, 3, 4, 2}}}, {{{4}, {1, 2, 2, 1}}}, {{{4}, {1, 2, 1, 1}}}},
                     .attrs = {{"padding", "SAME"}}}},
   });
KERNEL(MaxPoolV2, MaxPoolKernel, POOL_TYPES);

OP(MaxPoolGradV2, {
                      .doc = "MaxPoolGrad with the window as inputs.",
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
                  });
KERNEL(MaxPoolGradV2, MaxPoolGradKernel, POOL_TYPES);

OP(MaxPoolGradGradV2, {
                          .doc = "MaxPoolGradGrad with the window as inputs.",
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
                            return {Gradient(), Gradient(),
                                    Call("MaxPoolGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)},
                                         WindowAttributes(g)),
                                    Gradient(), Gradient()};
                          },
                          .examples = {{.inputs = {{{{1, 2, 2, 1}, {1, 5, 3, 2}}},
                                                   {{{1, 1, 1, 1}, {5}}},
                                                   {{{1, 2, 2, 1}}},
                                                   {{{4}, {1, 2, 2, 1}}},
                                                   {{{4}, {1, 2, 2, 1}}}},
                                        .attrs = {{"padding", "VALID"}}}},
                      });
KERNEL(MaxPoolGradGradV2, MaxPoolGradGradKernel, POOL_TYPES);

OP(AvgPool,
   {
       .doc = "The mean under a window that slides over height and width; padding does not count.",
       .inputs = {{"value", "T"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", kFloating}},
       .attrs = PoolAttrs(false),
       .shape = PoolShape,
       .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
         return {Call("AvgPoolGrad", {ShapeOf(g.x()), g.dy()}, WindowAttributes(g))};
       },
       .examples = {{.inputs = {{{{1, 3, 4, 2}}}}, .attrs = ExampleWindow()}},
   });
KERNEL(AvgPool, AvgPoolKernel, half, bfloat16, float, double);

OP(AvgPoolGrad, {
                    .doc = "The gradient of AvgPool: spreads `grad` evenly over each window.",
                    .inputs = {{"orig_input_shape", "int32"}, {"grad", "T"}},
                    .outputs = {{"output", "T"}},
                    .types = {{"T", kFloating}},
                    .attrs = PoolAttrs(false),
                    .shape = AvgPoolGradShape,
                    .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
                      return {Gradient(), Call("AvgPool", {g.dy()}, WindowAttributes(g))};
                    },
                    .examples = {{.inputs = {{{{4}, {1, 3, 4, 2}}}, {{{1, 2, 4, 2}}}},
                                  .attrs = ExampleWindow()}},
                });
KERNEL(AvgPoolGrad, AvgPoolGradKernel, half, bfloat16, float, double);

}  // namespace penstock
