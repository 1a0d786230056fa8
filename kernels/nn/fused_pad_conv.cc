// SPDX-License-Identifier: Apache-2.0
//
// FusedPadConv2D and FusedResizeAndPadConv2D: convolve images that are first padded by reflection,
// and before that perhaps resized. The padded images are a temporary tensor of one image.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/nn/conv_kernels.h"

namespace penstock {
namespace {

// Where an element of a padded dimension comes from: between two input elements, at a distance
// `weight` from the lower one.
struct Source {
  int64_t lower = 0, upper = 0;
  float weight = 0;
};

// One dimension of an image: resized from `in` to `size`, then padded.
struct PaddedDim {
  int64_t in = 0, size = 0, before = 0, after = 0;
  int64_t padded() const { return before + size + after; }
};

Source Resized(const PaddedDim& d, bool align_corners, int64_t i) {
  if (d.size == d.in) return {i, i, 0};
  const float scale = align_corners && d.size > 1
                          ? static_cast<float>(d.in - 1) / static_cast<float>(d.size - 1)
                          : static_cast<float>(d.in) / static_cast<float>(d.size);
  const float position = static_cast<float>(i) * scale, floor = std::floor(position);
  const int64_t lower = std::min(static_cast<int64_t>(floor), d.in - 1);
  return {lower, std::min(lower + 1, d.in - 1), position - floor};
}

// Returns the source of each padded element. `offset` is 0 if reflection repeats the border, else
// 1.
std::vector<Source> SourcesOf(const PaddedDim& d, bool align_corners, int64_t offset) {
  std::vector<Source> sources;
  for (int64_t p = 0; p < d.padded(); ++p) {
    int64_t i = p - d.before;
    if (i < 0) i = -i - 1 + offset;
    if (i >= d.size) i = 2 * d.size - 1 - i - offset;
    sources.push_back(Resized(d, align_corners, i));
  }
  return sources;
}

// Input `kResizes ? 2 : 1` has the paddings, the next one the filter.
template <class T, bool kResizes>
class FusedPadConvKernel final : public ConvKernel {
  using C = ConvType<T>;

  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(ConvKernelInit(node));
    std::string mode;
    RETURN_IF_ERROR(node.Attr("mode", &mode));
    offset_ = mode == "REFLECT" ? 1 : 0;
    return kResizes ? node.Attr("resize_align_corners", &align_corners_) : OkStatus();
  }

  // These ops have no data_format: images are NHWC.
  Status ConvKernelInit(const KernelInit& node) {
    ASSIGN_OR_RETURN(window_, WindowAttrs::From(node.attrs));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &images = ctx.input(0), &filter = ctx.input(kPaddings + 1);
    if (images.rank() != 4 || images.num_elements() == 0) {
      return InvalidArgument("input must be images [batch, height, width, channels], has shape ",
                             images.shape().ToString());
    }
    PaddedDim rows{.in = images.dim(1), .size = images.dim(1)};
    PaddedDim columns{.in = images.dim(2), .size = images.dim(2)};
    if (kResizes) RETURN_IF_ERROR(ReadSize(ctx.input(1), &rows, &columns));
    RETURN_IF_ERROR(ReadPaddings(ctx.input(kPaddings), &rows, &columns));
    const Dims dims = {1, rows.padded(), columns.padded(), images.dim(3)};
    ASSIGN_OR_RETURN(const Shape padded, Shape::Make(dims));
    ASSIGN_OR_RETURN(const ConvGeometry one, ConvGeometry::Of(window_, padded, filter.shape()));
    if (one.groups != 1) {
      return InvalidArgument("input and filter must have the same depth: ", images.dim(3), " vs ",
                             filter.dim(2));
    }
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Make({images.dim(0), one.h.out, one.w.out, one.out_channels}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (FillIfEmpty(one, out)) return OkStatus();
    ASSIGN_OR_RETURN(Tensor image, ctx.Temporary(kDTypeOf<C>, padded));
    const auto row_sources = SourcesOf(rows, align_corners_, offset_);
    const auto column_sources = SourcesOf(columns, align_corners_, offset_);
    const FloatInput<C> x(images), w(filter);
    FloatOutput<C> y(out);
    const int64_t in_image = images.num_elements() / images.dim(0);
    for (int64_t b = 0; b < images.dim(0); ++b) {
      Pad(ctx.threads(), x.data() + b * in_image, images.dim(2), images.dim(3), row_sources,
          column_sources, image.mutable_data<C>());
      Forward(one, image.data<C>(), w.data(), y.data() + b * one.output().num_elements(),
              ctx.threads());
    }
    return OkStatus();
  }

  static Status ReadSize(const Tensor& size, PaddedDim* rows, PaddedDim* columns) {
    if (size.rank() != 1 || size.num_elements() != 2) {
      return InvalidArgument("size must be a vector of height and width, has shape ",
                             size.shape().ToString());
    }
    rows->size = size.data<int32_t>()[0];
    columns->size = size.data<int32_t>()[1];
    if (rows->size > 0 && columns->size > 0) return OkStatus();
    return InvalidArgument("output dimensions must be positive, are ", rows->size, " and ",
                           columns->size);
  }

  Status ReadPaddings(const Tensor& paddings, PaddedDim* rows, PaddedDim* columns) const {
    if (paddings.shape() != Shape{4, 2}) {
      return InvalidArgument("paddings must be a matrix with 4 rows and 2 columns, has shape ",
                             paddings.shape().ToString());
    }
    const int32_t* const p = paddings.data<int32_t>();
    for (int i : {0, 1, 6, 7}) {
      if (p[i] != 0) {
        return InvalidArgument("Fused mirror padding only supports spatial padding, not of ",
                               i < 2 ? "batches" : "channels", ": ", p[i]);
      }
    }
    for (PaddedDim* d : {rows, columns}) {
      const int32_t* const own = p + (d == rows ? 2 : 4);
      d->before = own[0];
      d->after = own[1];
      const int64_t most = d->size - offset_;
      if (d->before < 0 || d->after < 0 || d->before > most || d->after > most) {
        return InvalidArgument("paddings must be at least 0 and at most ", most,
                               offset_ == 1 ? ", less than the dimension size" : "", ": ", own[0],
                               ", ", own[1]);
      }
    }
    return OkStatus();
  }

  static void Pad(Scheduler& threads, const C* x, int64_t width, int64_t channels,
                  const std::vector<Source>& rows, const std::vector<Source>& columns, C* y) {
    const int64_t row_size = static_cast<int64_t>(columns.size()) * channels;
    threads.ParallelFor(static_cast<int64_t>(rows.size()), static_cast<double>(row_size),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t r = begin; r < end; ++r) {
                            const C* const top = x + rows[r].lower * width * channels;
                            const C* const bottom = x + rows[r].upper * width * channels;
                            PadRow(top, bottom, static_cast<C>(rows[r].weight), channels, columns,
                                   y + r * row_size);
                          }
                        });
  }

  static void PadRow(const C* top, const C* bottom, C weight, int64_t channels,
                     const std::vector<Source>& columns, C* to) {
    for (const Source& column : columns) {
      const int64_t left = column.lower * channels, right = column.upper * channels;
      if (!kResizes) {
        to = std::copy_n(top + left, channels, to);
        continue;
      }
      const C x = static_cast<C>(column.weight);
      for (int64_t c = 0; c < channels; ++c) {
        const C above = top[left + c] + (top[right + c] - top[left + c]) * x;
        const C below = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * x;
        *to++ = above + (below - above) * weight;
      }
    }
  }

  static constexpr int kPaddings = kResizes ? 2 : 1;
  int64_t offset_ = 0;
  bool align_corners_ = false;
};

template <class T>
using FusedPadKernel = FusedPadConvKernel<T, false>;
template <class T>
using FusedResizeKernel = FusedPadConvKernel<T, true>;

// Returns the padded size, if the sizes and input `paddings` are known.
int64_t PaddedSize(int64_t size, const std::vector<int64_t>& paddings, int dim) {
  constexpr int64_t kSizeMax = int64_t{1} << 62;  // with paddings it still fits int64
  if (size == PartialShape::kUnknown || size > kSizeMax || paddings.empty()) {
    return PartialShape::kUnknown;
  }
  return size + paddings[2 * dim] + paddings[2 * dim + 1];
}

// Reads constant paddings; none if they are not known.
StatusOr<std::vector<int64_t>> ConstantPaddings(ShapeScope& s, int input) {
  const Tensor* constant = s.constant(input);
  std::vector<int64_t> paddings;
  if (constant == nullptr) return paddings;
  if (constant->shape() != Shape{4, 2}) {
    return InvalidArgument("paddings must be a matrix with 4 rows and 2 columns, has shape ",
                           constant->shape().ToString());
  }
  for (const int32_t each : constant->flat<int32_t>()) {
    if (each < 0) return InvalidArgument("paddings must be >= 0, are ", constant->ToString());
    paddings.push_back(each);
  }
  return paddings;
}

Status FusedConvShape(ShapeScope& s, bool resizes) {
  const int input = resizes ? 2 : 1;
  ASSIGN_OR_RETURN(const PartialShape image, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(const PartialShape filter, s.WithRank(input + 1, 4));
  ASSIGN_OR_RETURN(const WindowAttrs window, WindowAttrs::From(s.attrs()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, ConstantPaddings(s, input));
  std::vector<int64_t> size;
  if (resizes) s.ConstantInts(1, &size);
  Dims dims(4, PartialShape::kUnknown);
  if (image.known_rank()) dims[0] = image.dim(0);
  if (filter.known_rank()) dims[3] = filter.dim(3);
  for (int i : {1, 2}) {
    if (!image.known_rank() || !filter.known_rank()) break;
    int64_t in = image.dim(i);
    if (resizes) in = size.size() == 2 ? size[i - 1] : PartialShape::kUnknown;
    if (in < 0 && in != PartialShape::kUnknown) return InvalidArgument("size is negative: ", in);
    const int64_t padded = PaddedSize(in, paddings, i);
    ASSIGN_OR_RETURN(dims[i], WindowOutput(window, i, padded, filter.dim(i - 1)));
  }
  s.set_output(0, PartialShape(dims));
  return OkStatus();
}

// The gradient composes the ops that the fused one stands for.
std::vector<Gradient> FusedConvGradient(const GradientScope& g, bool resizes) {
  const Output x = g.x(0), paddings = g.x(resizes ? 2 : 1), filter = g.x(resizes ? 3 : 2);
  const Attrs mode = {{"mode", g.attrs().at("mode")}};
  const Attrs corners =
      resizes ? Attrs{{"align_corners", g.attrs().at("resize_align_corners")}} : Attrs{};
  Output image = x;
  if (resizes) image = Cast(Call("ResizeBilinear", {x, g.x(1)}, corners), g.dtype());
  const Output padded = Call("MirrorPad", {image, paddings}, mode);
  const Output dpadded = ImageGradientNode(g, ConvOf::kImages, padded, filter, g.dy());
  Output dx = Call("MirrorPadGrad", {dpadded, paddings}, mode);
  if (resizes) dx = Call("ResizeBilinearGrad", {Cast(dx, DType::kFloat), x}, corners);
  std::vector<Gradient> gradients(g.num_inputs());
  gradients[0] = dx;
  gradients[resizes ? 3 : 2] = FilterGradientNode(g, ConvOf::kImages, padded, filter, g.dy());
  return gradients;
}

OpDef FusedConvOp(const char* doc, bool resizes) {
  OpDef op = {
      .doc = doc,
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", {DType::kHalf, DType::kFloat, DType::kDouble}}},
      .attrs = {{"mode", OneOf{{"REFLECT", "SYMMETRIC"}}},
                {"strides", IntList{}},
                {"padding", OneOf{{"SAME", "VALID"}}}},
      .shape = [resizes](ShapeScope& s) { return FusedConvShape(s, resizes); },
      .gradient = [resizes](const GradientScope& g) { return FusedConvGradient(g, resizes); },
  };
  if (resizes) {
    op.inputs.push_back({"size", "int32"});
    op.attrs.insert(op.attrs.begin(), AttrDef("resize_align_corners", false));
  }
  op.inputs.push_back({"paddings", "int32"});
  op.inputs.push_back({"filter", "T"});
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    Example example = {.inputs = {{{{2, 3, 3, 2}}}},
                       .attrs = {{"mode", mode},
                                 {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                                 {"padding", "VALID"}},
                       // Resizing computes in float, in which small steps would be lost.
                       .check_gradient = !resizes};
    if (resizes) example.inputs.push_back({{{2}, {4, 2}}});
    example.inputs.push_back({{{4, 2}, {0, 0, 1, 1, 0, 1, 0, 0}}});
    example.inputs.push_back({{{2, 2, 2, 3}}});
    op.examples.push_back(example);
  }
  return op;
}

}  // namespace

OP(FusedPadConv2D) {
  OpDef op = FusedConvOp(
      "Pads images with their own reflection, as MirrorPad does, and convolves them.", false);
  op.types[0].allowed.push_back(DType::kBfloat16);
  return op;
}
OP(FusedResizeAndPadConv2D) {
  return FusedConvOp(
      "Resizes images by bilinear interpolation, pads them with their own reflection, as MirrorPad "
      "does, and convolves them.",
      true);
}
KERNEL(FusedPadConv2D, FusedPadKernel, half, bfloat16, float, double);
KERNEL(FusedResizeAndPadConv2D, FusedResizeKernel, half, float, double);

}  // namespace penstock
