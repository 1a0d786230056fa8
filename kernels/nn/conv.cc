// SPDX-License-Identifier: Apache-2.0
//
// Conv: the convolution of images or volumes, which the rank of the filter tells apart, with any
// number of batch dimensions.
#include <utility>
#include <vector>

#include "kernels/nn/conv_kernels.h"

namespace penstock {
namespace {

// Returns the attributes of Conv2D or Conv3D that mean the same.
Attrs SameRankAttrs(const Attrs& attrs, bool volumes) {
  Attrs same = attrs;
  const auto format = attrs.find("data_format");
  const std::string* given = format == attrs.end() ? nullptr : format->second.get<std::string>();
  const bool first = given != nullptr && *given == "CHANNELS_FIRST";
  same["data_format"] = volumes ? (first ? "NCDHW" : "NDHWC") : (first ? "NCHW" : "NHWC");
  const auto dilations = attrs.find("dilations");
  if (dilations != attrs.end()) {
    const auto* list = dilations->second.get<std::vector<int64_t>>();
    if (list != nullptr && list->empty()) same.erase("dilations");
  }
  return same;
}

Status CheckFilterRank(int rank) {
  if (rank == 4 || rank == 5) return OkStatus();
  return InvalidArgument("filter must have 4 or 5 dimensions, has ", rank);
}

template <class T>
class ConvOfAnyRankKernel final : public ConvKernel {
  Status Init(const KernelInit& node) override {
    attrs_ = node.attrs;
    RETURN_IF_ERROR(node.Attr("batch_dims", &batch_dims_));
    RETURN_IF_ERROR(node.Attr("groups", &groups_));
    if (batch_dims_ >= 0) return OkStatus();
    return InvalidArgument("batch_dims must be >= 0, is ", batch_dims_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &images = ctx.input(0), &filter = ctx.input(1);
    RETURN_IF_ERROR(CheckFilterRank(filter.rank()));
    const int spatial = filter.rank() - 2;
    if (images.rank() != batch_dims_ + spatial + 1) {
      return InvalidArgument("input must have ", batch_dims_, " batch dimensions, ", spatial,
                             " sizes and channels, has shape ", images.shape().ToString());
    }
    ASSIGN_OR_RETURN(const WindowAttrs window,
                     WindowAttrs::From(SameRankAttrs(attrs_, spatial == 3)));
    Dims dims = {1}, out_dims;
    for (int i = 0; i < images.rank(); ++i) {
      if (i < batch_dims_) {
        if (__builtin_mul_overflow(dims[0], images.dim(i), &dims[0])) {
          return InvalidArgument("input has too many images: ", images.shape().ToString());
        }
        out_dims.push_back(images.dim(i));
      } else {
        dims.push_back(images.dim(i));
      }
    }
    ASSIGN_OR_RETURN(const Shape image, Shape::Make(dims));
    ASSIGN_OR_RETURN(const ConvGeometry g, ConvGeometry::Of(window, image, filter.shape()));
    if (g.groups != groups_) {
      return InvalidArgument("input has ", g.in_channels, " channels, the filter ",
                             filter.dim(spatial), ": this needs ", g.groups,
                             " groups; attribute groups is ", groups_);
    }
    const Shape output = g.output();
    for (int i = 1; i < output.rank(); ++i) out_dims.push_back(output.dim(i));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(out_dims));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (FillIfEmpty(g, out)) return OkStatus();
    const FloatInput<ConvType<T>> x(images), w(filter);
    FloatOutput<ConvType<T>> y(out);
    ForEachGroup(g, x.data(), ImageRows(g), w.data(), FilterRows(g), y.data(), OutputRows(g),
                 [&](const ConvGeometry& one, const auto* image, const auto* filter, auto* output) {
                   Forward(one, image, filter, output, ctx.threads());
                 });
    return OkStatus();
  }

  Attrs attrs_;
  int batch_dims_ = 1;
  int64_t groups_ = 1;
};

Status ConvOfAnyRankShape(ShapeScope& s) {
  const PartialShape &image = s.input(0), &filter = s.input(1);
  if (!filter.known_rank()) return UnknownShape(s);
  RETURN_IF_ERROR(CheckFilterRank(filter.rank()));
  const int spatial = filter.rank() - 2;
  const int64_t batch_dims = s.attr<int64_t>("batch_dims");
  if (batch_dims < 0) return InvalidArgument("batch_dims must be >= 0, is ", batch_dims);
  if (!image.known_rank()) return UnknownShape(s);
  if (image.rank() != batch_dims + spatial + 1) {
    return InvalidArgument("input must have ", batch_dims, " batch dimensions, ", spatial,
                           " sizes and channels, has shape ", image.ToString());
  }
  ASSIGN_OR_RETURN(const WindowAttrs window,
                   WindowAttrs::From(SameRankAttrs(s.attrs(), spatial == 3)));
  PartialShape out = image;
  const int batch = static_cast<int>(batch_dims);
  for (int i = 0; i < spatial; ++i) {
    ASSIGN_OR_RETURN(const int64_t size,
                     WindowOutput(window, i + 1, image.dim(batch + i), filter.dim(i)));
    out.set_dim(batch + i, size);
  }
  out.set_dim(batch + spatial, filter.dim(spatial + 1));
  s.set_output(0, std::move(out));
  return OkStatus();
}

}  // namespace

OP(Conv) {
  const Attrs images = {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", "SAME"}};
  Attrs batches = images;
  batches["batch_dims"] = int64_t{2};
  return {
      .doc =
          "Convolves images (with a filter of 4 dimensions) or volumes (of 5) that have batch_dims "
          "batch dimensions. strides, dilations and explicit_paddings have a batch dimension and "
          "channels, as in Conv2D. The filter has the input channels of one of the groups.",
      .inputs = {{"input", "T"}, {"filter", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T",
                 {DType::kHalf, DType::kBfloat16, DType::kFloat, DType::kDouble, DType::kInt32}}},
      .attrs = {{"strides", IntList{}},
                {"padding", OneOf{{"SAME", "VALID", "EXPLICIT"}}},
                {"explicit_paddings", IntList{}, EmptyList{}},
                {"data_format", OneOf{{"CHANNELS_FIRST", "CHANNELS_LAST"}}, "CHANNELS_LAST"},
                {"dilations", IntList{}, EmptyList{}},
                {"batch_dims", 1},
                {"groups", 1}},
      .shape = ConvOfAnyRankShape,
      .examples = {{.inputs = {{{{2, 4, 3, 2}}}, {{{3, 2, 2, 3}}}}, .attrs = images},
                   {.inputs = {{{{2, 1, 4, 3, 2}}}, {{{3, 2, 2, 3}}}}, .attrs = batches}},
      .flops = ConvolutionFlops,
  };
}
KERNEL(Conv, ConvOfAnyRankKernel, half, bfloat16, float, double, int32_t);

}  // namespace penstock
