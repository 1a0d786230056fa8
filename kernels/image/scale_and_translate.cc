// SPDX-License-Identifier: Apache-2.0
//
// ScaleAndTranslate, ScaleAndTranslateGrad: scale and shift images with a choice of filters.
#include <algorithm>
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/elements.h"
#include "kernels/image/pixels.h"
#include "kernels/image/spans.h"

namespace penstock {
namespace {

class ScaleBase : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string name;
    RETURN_IF_ERROR(node.Attr("kernel_type", &name));
    RETURN_IF_ERROR(node.Attr("antialias", &antialias_));
    ASSIGN_OR_RETURN(filter_, FindFilter(name));
    return OkStatus();
  }

 protected:
  // Makes the spans of the rows and of the columns. Inputs `first` and `first` + 1 are the scale
  // and the translation. InvalidArgument unless both are two finite numbers, and those of the scale
  // are positive.
  Status MakeBoth(KernelContext& ctx, int first, const ImageBatch& in, int64_t height,
                  int64_t width, Spans* rows, Spans* columns) const {
    for (int i : {first, first + 1}) {
      const char* name = i == first ? "scale" : "translation";
      if (ctx.input(i).rank() != 1 || ctx.input(i).dim(0) != 2) {
        return InvalidArgument(name, " must have shape [2], has ", ctx.input(i).shape().ToString());
      }
      for (const float value : ctx.input(i).flat<float>()) {
        if (!std::isfinite(value) || (i == first && value <= 0)) {
          return InvalidArgument(name,
                                 i == first ? " must be greater than zero" : " must be finite",
                                 ", is ", ctx.input(i).ToString());
        }
      }
    }
    const float* scale = ctx.input(first).data<float>();
    const float* shift = ctx.input(first + 1).data<float>();
    ASSIGN_OR_RETURN(*rows,
                     MakeSpans(ctx, *filter_, antialias_, {in.height, height, scale[0], shift[0]}));
    ASSIGN_OR_RETURN(*columns,
                     MakeSpans(ctx, *filter_, antialias_, {in.width, width, scale[1], shift[1]}));
    return OkStatus();
  }

 private:
  const Filter* filter_ = nullptr;
  bool antialias_ = true;
};

// Inputs: images, size, scale, translation.
class ScaleAndTranslateKernel final : public ScaleBase {
  Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("images", images.shape()));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("size", ctx.input(1)));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{in.batch, size[0], size[1], in.channels}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() == 0) return OkStatus();
    Spans rows, columns;
    RETURN_IF_ERROR(MakeBoth(ctx, 2, in, size[0], size[1], &rows, &columns));
    const int64_t width = size[1] * in.channels;
    const double row_ns = static_cast<double>(rows.most * in.row() + columns.most * width);
    ctx.threads().ParallelFor(in.batch * size[0], row_ns, [&](int64_t begin, int64_t end) {
      std::vector<float> line(in.row()), sum(in.row());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / size[0], o = i % size[0];
        std::fill(sum.begin(), sum.end(), 0.f);
        for (int64_t k = 0; k < rows.count[o]; ++k) {
          ToFloats(images, image * in.image() + (rows.begin[o] + k) * in.row(), line.data(),
                   in.row());
          const float weight = rows.weights(o)[k];
          for (int64_t x = 0; x < in.row(); ++x) sum[x] += weight * line[x];
        }
        Narrow(columns, sum.data(), size[1], in.channels,
               output->mutable_data<float>() + i * width);
      }
    });
    return OkStatus();
  }

  static void Narrow(const Spans& columns, const float* from, int64_t width, int64_t channels,
                     float* to) {
    for (int64_t o = 0; o < width; ++o, to += channels) {
      std::fill_n(to, channels, 0.f);
      for (int64_t k = 0; k < columns.count[o]; ++k) {
        const float* pixel = from + (columns.begin[o] + k) * channels;
        for (int64_t c = 0; c < channels; ++c) to[c] += columns.weights(o)[k] * pixel[c];
      }
    }
  }
};

// Inputs: grads, original_image, scale, translation. Computes the transpose of ScaleAndTranslate.
class ScaleGradKernel final : public ScaleBase {
  Status Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    ASSIGN_OR_RETURN(const GradientImages images, GradientImages::Of(ctx));
    const ImageBatch &from = images.from, &to = images.to;
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(1).shape(), &output));
    ZeroElements(output->dtype(), output->mutable_raw_data(), output->num_elements());
    if (grads.num_elements() == 0 || output->num_elements() == 0) return OkStatus();
    Spans rows, columns;
    RETURN_IF_ERROR(MakeBoth(ctx, 2, to, from.height, from.width, &rows, &columns));
    const double image_ns = static_cast<double>(from.height) *
                            static_cast<double>(rows.most * to.row() + columns.most * from.row());
    ctx.threads().ParallelFor(to.batch, image_ns, [&](int64_t begin, int64_t end) {
      std::vector<float> line(to.row());
      for (int64_t b = begin; b < end; ++b) {
        float* image = output->mutable_data<float>() + b * to.image();
        for (int64_t o = 0; o < from.height; ++o) {
          std::fill(line.begin(), line.end(), 0.f);
          Widen(columns, grads.data<float>() + b * from.image() + o * from.row(), from.width,
                from.channels, line.data());
          for (int64_t k = 0; k < rows.count[o]; ++k) {
            float* row = image + (rows.begin[o] + k) * to.row();
            for (int64_t x = 0; x < to.row(); ++x) row[x] += rows.weights(o)[k] * line[x];
          }
        }
      }
    });
    return OkStatus();
  }

  static void Widen(const Spans& columns, const float* from, int64_t width, int64_t channels,
                    float* to) {
    for (int64_t o = 0; o < width; ++o, from += channels) {
      for (int64_t k = 0; k < columns.count[o]; ++k) {
        float* pixel = to + (columns.begin[o] + k) * channels;
        for (int64_t c = 0; c < channels; ++c) pixel[c] += columns.weights(o)[k] * from[c];
      }
    }
  }
};

// Returns the gradient of the images; only float images have one.
std::vector<Gradient> ScaleGradient(const GradientScope& g) {
  std::vector<Gradient> dx(4);
  if (g.x().dtype() != DType::kFloat) return dx;
  dx[0] = Call("ScaleAndTranslateGrad", {g.dy(), g.x(), g.x(2), g.x(3)},
               {{"kernel_type", g.attr<std::string>("kernel_type")},
                {"antialias", g.attr<bool>("antialias")}});
  return dx;
}

Status ScaleShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(2, 1).status());
  RETURN_IF_ERROR(s.WithRank(3, 1).status());
  return SizedShape(s, 1);
}

Status ScaleGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(1, 4));
  s.set_output(0, std::move(image));
  return OkStatus();
}

OP(ScaleAndTranslate) {
  return {
      .doc =
          "Scales images by `scale` and shifts them by `translation`, both [rows, columns]. "
          "kernel_type is the filter: lanczos1, lanczos3, lanczos5, gaussian, box, triangle, "
          "keyscubic or mitchellcubic. With antialias, the filter covers more pixels when images "
          "shrink. Pixels outside of an image count as 0.",
      .inputs = {{"images", "T"}, {"size", "int32"}, {"scale", "float"}, {"translation", "float"}},
      .outputs = {{"resized_images", "float"}},
      .types = {{"T",
                 {DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16, DType::kInt32,
                  DType::kInt64, DType::kBfloat16, DType::kHalf, DType::kFloat, DType::kDouble}}},
      .attrs = {{"kernel_type", "lanczos3"}, {"antialias", true}},
      .shape = ScaleShape,
      .gradient = ScaleGradient,
      .examples = {{.inputs = {{{{1, 4, 4, 1}}},
                               {{{2}, {3, 5}}},
                               {{{2}, {0.75, 1.25}}},
                               {{{2}, {0, 0.5}}}}}},
  };
}
KERNEL_ANY_TYPE(ScaleAndTranslate, ScaleAndTranslateKernel);

OP(ScaleAndTranslateGrad) {
  return {
      .doc =
          "The gradient of ScaleAndTranslate for its images. Only the shape of original_image is "
          "used.",
      .inputs = {{"grads", "T"},
                 {"original_image", "T"},
                 {"scale", "float"},
                 {"translation", "float"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", {DType::kFloat}}},
      .attrs = {{"kernel_type", "lanczos3"}, {"antialias", true}},
      .shape = ScaleGradShape,
      .examples = {{.inputs = {{{{1, 3, 5, 1}}},
                               {{{1, 4, 4, 1}}},
                               {{{2}, {0.75, 1.25}}},
                               {{{2}, {0, 0.5}}}}}},
  };
}
KERNEL_ANY_TYPE(ScaleAndTranslateGrad, ScaleGradKernel);

}  // namespace
}  // namespace penstock
