// SPDX-License-Identifier: Apache-2.0
//
// DecodePng, DecodeJpeg, DecodeGif, DecodeBmp, DecodeImage, DecodeAndCropJpeg, ExtractJpegShape.
//
// DecodePng, DecodeJpeg and DecodeGif decode all three formats: the data determines the format, and
// the op determines only the shape of the output. DecodeImage also decodes BMP.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/codec.h"

namespace penstock {
namespace {

StatusOr<string_view> Contents(const Tensor& contents) {
  if (contents.rank() != 0) {
    return InvalidArgument("contents must be a scalar string, has shape ",
                           contents.shape().ToString());
  }
  return string_view(contents.scalar<std::string>());
}

StatusOr<JpegDecoding> JpegOptions(const KernelInit& node) {
  JpegDecoding options;
  std::string method;
  RETURN_IF_ERROR(node.Attr("ratio", &options.ratio));
  RETURN_IF_ERROR(node.Attr("fancy_upscaling", &options.fancy_upscaling));
  RETURN_IF_ERROR(node.Attr("try_recover_truncated", &options.recover_truncated));
  RETURN_IF_ERROR(node.Attr("acceptable_fraction", &options.acceptable_fraction));
  RETURN_IF_ERROR(node.Attr("dct_method", &method));
  const int ratio = options.ratio;
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    return InvalidArgument("ratio must be 1, 2, 4, or 8, got ", ratio);
  }
  if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
    return InvalidArgument("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}, ",
                           "got '", method, "'");
  }
  options.accurate = method == "INTEGER_ACCURATE";
  return options;
}

enum class DecodeOp { kPng, kJpeg, kGif, kBmp, kImage };

const char* Name(DecodeOp op) {
  switch (op) {
    case DecodeOp::kPng:
      return "DecodePng";
    case DecodeOp::kJpeg:
      return "DecodeJpeg";
    case DecodeOp::kGif:
      return "DecodeGif";
    case DecodeOp::kBmp:
      return "DecodeBmp";
    case DecodeOp::kImage:
      return "DecodeImage";
  }
  __builtin_unreachable();
}

class DecodeKernel : public Kernel {
 public:
  explicit DecodeKernel(DecodeOp op) : op_(op) {}

 private:
  Status Init(const KernelInit& node) override {
    if (op_ == DecodeOp::kGif) {
      channels_ = 3;
      return OkStatus();
    }
    RETURN_IF_ERROR(node.Attr("channels", &channels_));
    if (channels_ != 0 && channels_ != 1 && channels_ != 3 && channels_ != 4) {
      return InvalidArgument("channels must be 0, 1, 3, or 4, got ", channels_);
    }
    if (op_ == DecodeOp::kJpeg) {
      ASSIGN_OR_RETURN(jpeg_, JpegOptions(node));
    }
    if (node.attrs.count("dtype") > 0) RETURN_IF_ERROR(node.Attr("dtype", &dtype_));
    if (op_ == DecodeOp::kImage) return node.Attr("expand_animations", &expand_animations_);
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const string_view data, Contents(ctx.input(0)));
    const ImageFormat format = FormatOf(data);
    // Decodes in the type that the decoder produces, directly into the output if that type is
    // requested.
    const bool wide = format == ImageFormat::kPng && dtype_ != DType::kUint8;
    const DType made = wide ? DType::kUint16 : DType::kUint8;
    Tensor pixels;
    RETURN_IF_ERROR(Decode(data, format, wide, [&](const ImageSize& size) -> StatusOr<void*> {
      ASSIGN_OR_RETURN(const Shape shape, OutputShape(format, size));
      if (made == dtype_) {
        Tensor* out;
        RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
        return out->mutable_raw_data();
      }
      ASSIGN_OR_RETURN(pixels, ctx.Temporary(made, shape));
      return pixels.mutable_raw_data();
    }));
    return pixels.valid() ? Widen(ctx, pixels) : OkStatus();
  }

  Status Decode(string_view data, ImageFormat format, bool wide, PixelSink sink) const {
    switch (format) {
      case ImageFormat::kPng:
        return DecodePng(data, channels_, wide, sink);
      case ImageFormat::kJpeg: {
        if (channels_ == 4) return InvalidArgument("channels must be 0, 1, or 3 for JPEG, got 4");
        JpegDecoding options = jpeg_;
        options.channels = channels_;
        return DecodeJpeg(data, options, sink);
      }
      case ImageFormat::kGif:
        if (channels_ != 0 && channels_ != 3) {
          return InvalidArgument("channels must be 0 or 3 for GIF, got ", channels_);
        }
        return DecodeGif(data, op_ == DecodeOp::kImage && !expand_animations_, sink);
      case ImageFormat::kBmp:
        if (op_ == DecodeOp::kBmp || op_ == DecodeOp::kImage)
          return DecodeBmp(data, channels_, sink);
        return InvalidArgument("Trying to decode BMP format using a wrong op. Use `decode_bmp` or ",
                               "`decode_image` instead. Op used: ", Name(op_));
      default:
        return InvalidArgument("Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    }
  }

  StatusOr<Shape> OutputShape(ImageFormat format, const ImageSize& size) const {
    if (op_ == DecodeOp::kBmp && format != ImageFormat::kBmp) {
      return InvalidArgument("DecodeBmp takes BMP only");
    }
    const bool animation = format == ImageFormat::kGif;
    if (op_ == DecodeOp::kGif || (animation && op_ == DecodeOp::kImage && expand_animations_)) {
      return Shape::Make(Dims{size.frames, size.height, size.width, size.channels});
    }
    if (animation && size.frames > 1) {
      return InvalidArgument("Got ", size.frames, " frames, but animated gifs can only be decoded ",
                             "by tf.io.decode_gif or tf.io.decode_image");
    }
    return Shape::Make(Dims{size.height, size.width, size.channels});
  }

  // Converts `pixels` to the type of the output; floats become numbers in [0, 1].
  Status Widen(KernelContext& ctx, const Tensor& pixels) const {
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, pixels.shape(), &out));
    const int64_t n = pixels.num_elements();
    if (dtype_ == DType::kUint16) {
      std::transform(pixels.data<uint8_t>(), pixels.data<uint8_t>() + n,
                     out->mutable_data<uint16_t>(), [](uint8_t x) { return x * 256; });
    } else if (pixels.dtype() == DType::kUint16) {
      std::transform(pixels.data<uint16_t>(), pixels.data<uint16_t>() + n,
                     out->mutable_data<float>(), [](uint16_t x) { return x * (1.f / 65535); });
    } else {
      std::transform(pixels.data<uint8_t>(), pixels.data<uint8_t>() + n, out->mutable_data<float>(),
                     [](uint8_t x) { return x * (1.f / 255); });
    }
    return OkStatus();
  }

  const DecodeOp op_;
  int channels_ = 0;
  JpegDecoding jpeg_;
  DType dtype_ = DType::kUint8;
  bool expand_animations_ = true;
};

template <DecodeOp kOp>
struct DecodeKernelOf final : DecodeKernel {
  DecodeKernelOf() : DecodeKernel(kOp) {}
};

class DecodeAndCropJpegKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(options_, JpegOptions(node));
    RETURN_IF_ERROR(node.Attr("channels", &options_.channels));
    if (options_.channels == 0 || options_.channels == 1 || options_.channels == 3) {
      return OkStatus();
    }
    return InvalidArgument("channels must be 0, 1, or 3, got ", options_.channels);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const string_view data, Contents(ctx.input(0)));
    const Tensor& window = ctx.input(1);
    if (window.rank() != 1 || window.dim(0) != 4) {
      return InvalidArgument("crop_window must be [y, x, height, width], is ", window.ToString());
    }
    const auto w = window.flat<int32_t>();
    Tensor whole;
    RETURN_IF_ERROR(DecodeJpeg(data, options_, [&](const ImageSize& size) -> StatusOr<void*> {
      if (w[0] < 0 || w[1] < 0 || w[2] < 1 || w[3] < 1 || size.height - w[0] < w[2] ||
          size.width - w[1] < w[3]) {
        return InvalidArgument("Invalid JPEG data or crop window: window ", window.ToString(),
                               " in an image of ", size.height, " x ", size.width);
      }
      ASSIGN_OR_RETURN(
          whole, ctx.Temporary(DType::kUint8, Shape({size.height, size.width, size.channels})));
      return whole.mutable_raw_data();
    }));
    Tensor* out;
    const int64_t channels = whole.dim(2);
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({w[2], w[3], channels}), &out));
    for (int64_t r = 0; r < w[2]; ++r) {
      const int64_t from = ((w[0] + r) * whole.dim(1) + w[1]) * channels;
      std::copy_n(whole.data<uint8_t>() + from, w[3] * channels,
                  out->mutable_data<uint8_t>() + r * w[3] * channels);
    }
    return OkStatus();
  }
  JpegDecoding options_;
};

template <class T>
class ExtractJpegShapeKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const string_view data, Contents(ctx.input(0)));
    ASSIGN_OR_RETURN(const ImageSize size, JpegSize(data));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({3}), &out));
    T* shape = out->mutable_data<T>();
    shape[0] = static_cast<T>(size.height);
    shape[1] = static_cast<T>(size.width);
    shape[2] = static_cast<T>(size.channels);
    return OkStatus();
  }
};

// Sets the output's shape to [height, width, channels], as far as known.
Status ImageShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  const int64_t channels = s.attr<int64_t>("channels");
  s.set_output(0, PartialShape({-1, -1, channels > 0 ? channels : -1}));
  return OkStatus();
}

constexpr char kAnyFormat[] = " (Data in another of the formats PNG, JPEG and GIF is taken, too.)";

std::vector<AttrDef> JpegAttrs() {
  return {{"channels", 0},
          {"ratio", 1},
          {"fancy_upscaling", true},
          {"try_recover_truncated", false},
          {"acceptable_fraction", 1.0f},
          {"dct_method", ""}};
}

}  // namespace

OP(DecodePng) {
  return {
      .doc = StrCat("Decodes a PNG.", kAnyFormat),
      .inputs = {{"contents", "string"}},
      .outputs = {{"image", "dtype"}},
      .types = {{"dtype", {DType::kUint8, DType::kUint16}, DType::kUint8}},
      .attrs = {{"channels", 0}},
      .shape = ImageShape,
      .gradient = NoGradient,
      .untestable_alone = "needs an image: kernels/image has its tests",
  };
}
KERNEL_ANY_TYPE(DecodePng, DecodeKernelOf<DecodeOp::kPng>);

OP(DecodeJpeg) {
  return {
      .doc = StrCat("Decodes a JPEG.", kAnyFormat),
      .inputs = {{"contents", "string"}},
      .outputs = {{"image", "uint8"}},
      .attrs = JpegAttrs(),
      .shape = ImageShape,
      .gradient = NoGradient,
      .untestable_alone = "needs an image: kernels/image has its tests",
  };
}
KERNEL_ANY_TYPE(DecodeJpeg, DecodeKernelOf<DecodeOp::kJpeg>);

OP(DecodeAndCropJpeg) {
  return {
      .doc = "Decodes the window [y, x, height, width] of a JPEG.",
      .inputs = {{"contents", "string"}, {"crop_window", "int32"}},
      .outputs = {{"image", "uint8"}},
      .attrs = JpegAttrs(),
      .shape = ImageShape,
      .gradient = NoGradient,
      .untestable_alone = "needs an image: kernels/image has its tests",
  };
}
KERNEL_ANY_TYPE(DecodeAndCropJpeg, DecodeAndCropJpegKernel);

OP(DecodeGif) {
  return {
      .doc = StrCat("Decodes the frames of a GIF.", kAnyFormat),
      .inputs = {{"contents", "string"}},
      .outputs = {{"image", "uint8"}},
      .shape =
          [](ShapeScope& s) {
            s.set_output(0, PartialShape({-1, -1, -1, 3}));
            return s.WithRank(0, 0).status();
          },
      .gradient = NoGradient,
      .untestable_alone = "needs an image: kernels/image has its tests",
  };
}
KERNEL_ANY_TYPE(DecodeGif, DecodeKernelOf<DecodeOp::kGif>);

OP(DecodeBmp) {
  return {
      .doc = "Decodes an uncompressed BMP.",
      .inputs = {{"contents", "string"}},
      .outputs = {{"image", "uint8"}},
      .attrs = {{"channels", 0}},
      .shape = ImageShape,
      .gradient = NoGradient,
      .untestable_alone = "needs an image: kernels/image has its tests",
  };
}
KERNEL_ANY_TYPE(DecodeBmp, DecodeKernelOf<DecodeOp::kBmp>);

OP(DecodeImage) {
  return {
      .doc =
          "Decodes a PNG, JPEG, GIF or BMP. An animation has a leading dimension of frames; "
          "without expand_animations only its first frame is returned. Float results are in "
          "[0, 1].",
      .inputs = {{"contents", "string"}},
      .outputs = {{"image", "dtype"}},
      .types = {{"dtype", {DType::kUint8, DType::kUint16, DType::kFloat}, DType::kUint8}},
      .attrs = {{"channels", 0}, {"expand_animations", true}},
      .shape =
          [](ShapeScope& s) {
            if (!s.attr<bool>("expand_animations")) return ImageShape(s);
            return s.WithRank(0, 0).status();
          },
      .gradient = NoGradient,
      .untestable_alone = "needs an image: kernels/image has its tests",
  };
}
KERNEL_ANY_TYPE(DecodeImage, DecodeKernelOf<DecodeOp::kImage>);

OP(ExtractJpegShape) {
  return {
      .doc = "Returns height, width and channels of a JPEG, from its header.",
      .inputs = {{"contents", "string"}},
      .outputs = {{"image_shape", "output_type"}},
      .types = {{"output_type", kIndex, DType::kInt32}},
      .shape =
          [](ShapeScope& s) {
            s.set_output(0, PartialShape({3}));
            return s.WithRank(0, 0).status();
          },
      .gradient = NoGradient,
      .untestable_alone = "needs an image: kernels/image has its tests",
  };
}
KERNEL_BY("output_type", ExtractJpegShape, ExtractJpegShapeKernel, int32_t, int64_t);

}  // namespace penstock
