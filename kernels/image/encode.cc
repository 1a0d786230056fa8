// SPDX-License-Identifier: Apache-2.0
//
// EncodePng, EncodeJpeg, EncodeJpegVariableQuality: encode images.
#include <cstdint>
#include <string>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/codec.h"

namespace penstock {
namespace {

class EncodePngKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("compression", &compression_));
    if (compression_ >= -1 && compression_ <= 9) return OkStatus();
    return InvalidArgument("compression should be in [-1,9], got ", compression_);
  }

  // The input is [..., height, width, channels].
  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const int rank = image.rank();
    if (rank < 3) {
      return InvalidArgument("image must be at least 3-dimensional, has shape ",
                             image.shape().ToString());
    }
    const ImageSize size = {1, image.dim(rank - 3), image.dim(rank - 2), image.dim(rank - 1)};
    if (size.channels < 1 || size.channels > 4) {
      return InvalidArgument("image must have 1, 2, 3, or 4 channels, has shape ",
                             image.shape().ToString());
    }
    RETURN_IF_ERROR(size.Check("PNG"));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape(image.shape().dims().first(rank - 3)), &out));
    const bool wide = image.dtype() == DType::kUint16;
    const int64_t bytes = size.elements() * (wide ? 2 : 1);
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      RETURN_IF_ERROR(EncodePng(static_cast<const char*>(image.raw_data()) + i * bytes, size, wide,
                                compression_, &out->mutable_data<std::string>()[i]));
    }
    return OkStatus();
  }
  int compression_ = -1;
};

StatusOr<ImageSize> JpegInput(const Tensor& image) {
  if (image.rank() != 3) {
    return InvalidArgument("image must be 3-dimensional, has shape ", image.shape().ToString());
  }
  const ImageSize size = {1, image.dim(0), image.dim(1), image.dim(2)};
  if (size.channels == 1 || size.channels == 3) return size;
  return InvalidArgument("image must have 1 or 3 channels, has shape ", image.shape().ToString());
}

Status CheckQuality(int quality) {
  if (quality >= 0 && quality <= 100) return OkStatus();
  return InvalidArgument("quality must be in [0,100], got ", quality);
}

class EncodeJpegKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    std::string format, unit;
    RETURN_IF_ERROR(node.Attr("format", &format));
    channels_ = format == "grayscale" ? 1 : format == "rgb" ? 3 : 0;
    RETURN_IF_ERROR(node.Attr("quality", &options_.quality));
    RETURN_IF_ERROR(CheckQuality(options_.quality));
    RETURN_IF_ERROR(node.Attr("progressive", &options_.progressive));
    RETURN_IF_ERROR(node.Attr("optimize_size", &options_.optimize_size));
    RETURN_IF_ERROR(node.Attr("chroma_downsampling", &options_.chroma_downsampling));
    RETURN_IF_ERROR(node.Attr("density_unit", &unit));
    options_.density_per_cm = unit == "cm";
    RETURN_IF_ERROR(node.Attr("x_density", &options_.x_density));
    RETURN_IF_ERROR(node.Attr("y_density", &options_.y_density));
    return node.Attr("xmp_metadata", &options_.xmp_metadata);
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ImageSize size, JpegInput(ctx.input(0)));
    if (channels_ != 0 && channels_ != size.channels) {
      return InvalidArgument("format needs ", channels_, " channels, image has shape ",
                             ctx.input(0).shape().ToString());
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape(), &out));
    return EncodeJpeg(ctx.input(0).data<uint8_t>(), size, options_,
                      out->mutable_data<std::string>());
  }
  int64_t channels_ = 0;
  JpegEncoding options_;
};

class EncodeJpegVariableQualityKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ImageSize size, JpegInput(ctx.input(0)));
    if (ctx.input(1).rank() != 0) {
      return InvalidArgument("quality must be scalar, has shape ", ctx.input(1).shape().ToString());
    }
    JpegEncoding options{.quality = ctx.input(1).scalar<int32_t>()};
    RETURN_IF_ERROR(CheckQuality(options.quality));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape(), &out));
    return EncodeJpeg(ctx.input(0).data<uint8_t>(), size, options,
                      out->mutable_data<std::string>());
  }
};

Status ScalarOfImage(ShapeScope& s) {
  s.set_output(0, PartialShape::Scalar());
  return s.WithRank(0, 3).status();
}

Status PngShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape image, s.WithRankAtLeast(0, 3));
  if (image.known_rank()) {
    s.set_output(0, PartialShape(image.dims().first(image.rank() - 3)));
  }
  return OkStatus();
}

}  // namespace

OP(EncodePng) {
  return {
      .doc = "Encodes each image [height, width, channels] as a PNG.",
      .inputs = {{"image", "T"}},
      .outputs = {{"contents", "string"}},
      .types = {{"T", {DType::kUint8, DType::kUint16}, DType::kUint8}},
      .attrs = {{"compression", -1}},
      .shape = PngShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3, 2, 4}}}}}},
  };
}
KERNEL_ANY_TYPE(EncodePng, EncodePngKernel);

OP(EncodeJpeg) {
  return {
      .doc = "Encodes an image [height, width, 1 or 3] as a JPEG.",
      .inputs = {{"image", "uint8"}},
      .outputs = {{"contents", "string"}},
      .attrs = {{"format", OneOf{{"", "grayscale", "rgb"}}, ""},
                {"quality", 95},
                {"progressive", false},
                {"optimize_size", false},
                {"chroma_downsampling", true},
                {"density_unit", OneOf{{"in", "cm"}}, "in"},
                {"x_density", 300},
                {"y_density", 300},
                {"xmp_metadata", ""}},
      .shape = ScalarOfImage,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3, 2, 3}}}}}},
  };
}
KERNEL_ANY_TYPE(EncodeJpeg, EncodeJpegKernel);

OP(EncodeJpegVariableQuality) {
  return {
      .doc = "Encodes an image as a JPEG of the given quality.",
      .inputs = {{"images", "uint8"}, {"quality", "int32"}},
      .outputs = {{"contents", "string"}},
      .shape = ScalarOfImage,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3, 2, 3}}}, {{{}, {80}}}}}},
  };
}
KERNEL_ANY_TYPE(EncodeJpegVariableQuality, EncodeJpegVariableQualityKernel);

}  // namespace penstock
