// SPDX-License-Identifier: Apache-2.0
//
// Conv2D and its two gradients, over NHWC images with HWIO filters.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/float16_blocks.h"
#include "kernels/nn/conv_geometry.h"

namespace penstock {

StatusOr<ConvGeometry> ConvGeometry::Of(const WindowAttrs& window, const Shape& image,
                                        const Shape& filter) {
  if (image.rank() != 4) {
    return InvalidArgument("input must be a batch of images [batch, height, width, channels], has ",
                           "shape ", image.ToString());
  }
  if (filter.rank() != 4) {
    return InvalidArgument(
        "filter must have shape [height, width, in_channels, out_channels], has ",
        filter.ToString());
  }
  if (image.dim(3) != filter.dim(2)) {
    return InvalidArgument("input has ", image.dim(3), " channels, the filter ", filter.ToString(),
                           " is for ", filter.dim(2));
  }
  ConvGeometry g{.batch = image.dim(0), .in_channels = image.dim(3), .out_channels = filter.dim(3)};
  ASSIGN_OR_RETURN(g.h, window.Over(1, image.dim(1), filter.dim(0)));
  ASSIGN_OR_RETURN(g.w, window.Over(2, image.dim(2), filter.dim(1)));
  const int64_t out[] = {g.batch, g.h.out, g.w.out, g.out_channels};
  RETURN_IF_ERROR(CheckedProduct(out).status());
  // The unrolled windows of one image.
  const int64_t rows[] = {g.h.out, g.w.out, g.h.size, g.w.size, g.in_channels, 8};
  RETURN_IF_ERROR(CheckedProduct(rows).status());
  return g;
}

namespace {

// How a type is computed: 16-bit floats in float.
void Forward(const ConvGeometry& g, const float* x, const float* w, float* y, ThreadPool& t) {
  ConvForward(g, x, w, y, t);
}
void ImageGradient(const ConvGeometry& g, const float* w, const float* dy, float* dx,
                   ThreadPool& t) {
  ConvImageGradient(g, w, dy, dx, t);
}
void FilterGradient(const ConvGeometry& g, const float* x, const float* dy, float* dw,
                    ThreadPool& t) {
  ConvFilterGradient(g, x, dy, dw, t);
}
template <class T>
void Forward(const ConvGeometry& g, const T* x, const T* w, T* y, ThreadPool& t) {
  UnrolledForward(g, x, w, y, t);
}
template <class T>
void ImageGradient(const ConvGeometry& g, const T* w, const T* dy, T* dx, ThreadPool& t) {
  UnrolledImageGradient(g, w, dy, dx, t);
}
template <class T>
void FilterGradient(const ConvGeometry& g, const T* x, const T* dy, T* dw, ThreadPool& t) {
  UnrolledFilterGradient(g, x, dy, dw, t);
}

// Calls compute(a, b, out) with a type that there is code for.
template <class T, class Compute>
void InComputeType(const Tensor& a, const Tensor& b, Tensor* out, const Compute& compute) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    std::vector<float> fa(a.num_elements()), fb(b.num_elements()), fout(out->num_elements());
    Float16ToFloat(a.dtype(), a.raw_data(), fa.data(), a.num_elements());
    Float16ToFloat(b.dtype(), b.raw_data(), fb.data(), b.num_elements());
    compute(fa.data(), fb.data(), fout.data());
    FloatToFloat16(out->dtype(), fout.data(), out->mutable_raw_data(), out->num_elements());
  } else {
    compute(a.data<T>(), b.data<T>(), out->mutable_data<T>());
  }
}

class ConvKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(window_, WindowAttrs::From(node.attrs));
    return OkStatus();
  }

  // A shape given as a vector of 4 int32; for an image also as its height and width alone, the rest
  // being that of `others`.
  static StatusOr<Shape> ShapeInput(const char* what, const Tensor& input, int64_t batch,
                                    int64_t channels) {
    const auto v = input.flat<int32_t>();
    if (input.rank() == 1 && v.size() == 4) return Shape::Make(Dims(v.begin(), v.end()));
    if (input.rank() == 1 && v.size() == 2 && batch >= 0) {
      return Shape::Make(Dims{batch, v[0], v[1], channels});
    }
    return InvalidArgument(what, " must be a vector of 4 sizes, is ", input.ToString());
  }

  static Status ExpectGradient(const Tensor& dy, const ConvGeometry& g) {
    if (dy.shape() == g.output()) return OkStatus();
    return InvalidArgument("out_backprop must have the convolution's output shape ",
                           g.output().ToString(), ", has ", dy.shape().ToString());
  }

  // Nothing to compute: a result of zeros, where it has elements at all.
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
class Conv2DKernel final : public ConvKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const Tensor& filter = ctx.input(1);
    ASSIGN_OR_RETURN(const ConvGeometry g,
                     ConvGeometry::Of(window_, image.shape(), filter.shape()));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &out));
    if (FillIfEmpty(g, out)) return OkStatus();
    InComputeType<T>(image, filter, out,
                     [&](auto* x, auto* w, auto* y) { Forward(g, x, w, y, ctx.threads()); });
    return OkStatus();
  }
};

template <class T>
class Conv2DBackpropInputKernel final : public ConvKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& filter = ctx.input(1);
    const Tensor& dy = ctx.input(2);
    if (filter.rank() != 4 || dy.rank() != 4) {
      return InvalidArgument("filter and out_backprop must have 4 dimensions, have shapes ",
                             filter.shape().ToString(), " and ", dy.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Shape image,
                     ShapeInput("input_sizes", ctx.input(0), dy.dim(0), filter.dim(2)));
    ASSIGN_OR_RETURN(const ConvGeometry g, ConvGeometry::Of(window_, image, filter.shape()));
    RETURN_IF_ERROR(ExpectGradient(dy, g));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, image, &out));
    if (FillIfEmpty(g, out)) return OkStatus();
    InComputeType<T>(filter, dy, out, [&](auto* w, auto* d, auto* dx) {
      ImageGradient(g, w, d, dx, ctx.threads());
    });
    return OkStatus();
  }
};

template <class T>
class Conv2DBackpropFilterKernel final : public ConvKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const Tensor& dy = ctx.input(2);
    ASSIGN_OR_RETURN(const Shape filter, ShapeInput("filter_sizes", ctx.input(1), -1, -1));
    ASSIGN_OR_RETURN(const ConvGeometry g, ConvGeometry::Of(window_, image.shape(), filter));
    RETURN_IF_ERROR(ExpectGradient(dy, g));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, filter, &out));
    if (FillIfEmpty(g, out)) return OkStatus();
    InComputeType<T>(image, dy, out, [&](auto* x, auto* d, auto* dw) {
      FilterGradient(g, x, d, dw, ctx.threads());
    });
    return OkStatus();
  }
};

Status Conv2DShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(PartialShape filter, s.WithRank(1, 4));
  ASSIGN_OR_RETURN(const WindowAttrs window, WindowAttrs::From(s.attrs()));
  if (!image.known_rank()) image = PartialShape::UnknownOfRank(4);
  if (!filter.known_rank()) filter = PartialShape::UnknownOfRank(4);
  if (image.dim(3) >= 0 && filter.dim(2) >= 0 && image.dim(3) != filter.dim(2)) {
    return InvalidArgument("input has ", image.dim(3), " channels, the filter ", filter.ToString(),
                           " is for ", filter.dim(2));
  }
  PartialShape out = PartialShape::UnknownOfRank(4);
  out.set_dim(0, image.dim(0));
  out.set_dim(3, filter.dim(3));
  for (int dim : {1, 2}) {
    ASSIGN_OR_RETURN(const int64_t size,
                     WindowOutput(window, dim, image.dim(dim), filter.dim(dim - 1)));
    out.set_dim(dim, size);
  }
  s.set_output(0, out);
  return OkStatus();
}

// The shape that a constant input states.
Status ShapeFromSizes(ShapeScope& s, int input) {
  std::vector<int64_t> sizes;
  PartialShape out = PartialShape::UnknownOfRank(4);
  if (s.ConstantInts(input, &sizes) && sizes.size() == 4) {
    ASSIGN_OR_RETURN(out, PartialShape::Make(sizes));
  }
  s.set_output(0, out);
  return OkStatus();
}

Attrs ConvAttributes(const GradientScope& g) {
  Attrs attrs;
  for (const char* name : {"strides", "padding", "explicit_paddings", "data_format", "dilations",
                           "use_cudnn_on_gpu"}) {
    const auto it = g.attrs().find(name);
    if (it != g.attrs().end()) attrs[name] = it->second;
  }
  return attrs;
}

Output ImageGradientOf(const GradientScope& g, Output image, Output filter, Output dy) {
  return Call("Conv2DBackpropInput", {ShapeOf(image), filter, dy}, ConvAttributes(g));
}
Output FilterGradientOf(const GradientScope& g, Output image, Output filter, Output dy) {
  return Call("Conv2DBackpropFilter", {image, ShapeOf(filter), dy}, ConvAttributes(g));
}
Output ConvOf(const GradientScope& g, Output image, Output filter) {
  return Call("Conv2D", {image, filter}, ConvAttributes(g));
}

const DTypes& ConvTypes() {
  static const DTypes& types =
      *new DTypes{DType::kHalf, DType::kBfloat16, DType::kFloat, DType::kDouble, DType::kInt32};
  return types;
}

std::vector<AttrDef> ConvAttrs() {
  return {{"strides", IntList{}},
          {"use_cudnn_on_gpu", true},
          {"padding", OneOf{{"SAME", "VALID", "EXPLICIT"}}},
          {"explicit_paddings", IntList{}, EmptyList{}},
          {"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"},
          {"dilations", std::vector<int64_t>{1, 1, 1, 1}}};
}

Attrs ExampleAttrs(const char* padding, int64_t stride) {
  return {{"strides", std::vector<int64_t>{1, stride, 1, 1}}, {"padding", padding}};
}

}  // namespace

OP(Conv2D, {
               .doc = "Slides a filter over images: each output pixel is the window under it times "
                      "the filter.",
               .inputs = {{"input", "T"}, {"filter", "T"}},
               .outputs = {{"output", "T"}},
               .types = {{"T", ConvTypes()}},
               .attrs = ConvAttrs(),
               .shape = Conv2DShape,
               .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
                 return {ImageGradientOf(g, g.x(0), g.x(1), g.dy()),
                         FilterGradientOf(g, g.x(0), g.x(1), g.dy())};
               },
               .examples = {{.inputs = {{{{2, 4, 3, 2}}}, {{{3, 2, 2, 3}}}},
                             .attrs = ExampleAttrs("SAME", 2)},
                            {.inputs = {{{{1, 4, 3, 1}}}, {{{2, 2, 1, 2}}}},
                             .attrs = ExampleAttrs("VALID", 1)}},
           });
KERNEL(Conv2D, Conv2DKernel, half, bfloat16, float, double, int32_t);

OP(Conv2DBackpropInput,
   {
       .doc = "The gradient of Conv2D for its images, whose shape is `input_sizes`.",
       .inputs = {{"input_sizes", "int32"}, {"filter", "T"}, {"out_backprop", "T"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", ConvTypes()}},
       .attrs = ConvAttrs(),
       .shape = [](ShapeScope& s) { return ShapeFromSizes(s, 0); },
       .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
         return {Gradient(), FilterGradientOf(g, g.dy(), g.x(1), g.x(2)),
                 ConvOf(g, g.dy(), g.x(1))};
       },
       .examples = {{.inputs = {{{{4}, {2, 4, 3, 2}}}, {{{3, 2, 2, 3}}}, {{{2, 2, 3, 3}}}},
                     .attrs = ExampleAttrs("SAME", 2)}},
   });
KERNEL(Conv2DBackpropInput, Conv2DBackpropInputKernel, half, bfloat16, float, double, int32_t);

OP(Conv2DBackpropFilter,
   {
       .doc = "The gradient of Conv2D for its filter, whose shape is `filter_sizes`.",
       .inputs = {{"input", "T"}, {"filter_sizes", "int32"}, {"out_backprop", "T"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", ConvTypes()}},
       .attrs = ConvAttrs(),
       .shape = [](ShapeScope& s) { return ShapeFromSizes(s, 1); },
       .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
         return {ImageGradientOf(g, g.x(0), g.dy(), g.x(2)), Gradient(), ConvOf(g, g.x(0), g.dy())};
       },
       .examples = {{.inputs = {{{{2, 4, 3, 2}}}, {{{4}, {3, 2, 2, 3}}}, {{{2, 2, 3, 3}}}},
                     .attrs = ExampleAttrs("SAME", 2)}},
   });
KERNEL(Conv2DBackpropFilter, Conv2DBackpropFilterKernel, half, bfloat16, float, double, int32_t);

}  // namespace penstock
