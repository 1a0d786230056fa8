// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/codec.h"
#include "kernels/summary/add_media.h"
#include "kernels/summary/arguments.h"

namespace penstock {
namespace {

// Converts pixels to bytes: [0, max] becomes [0, 255]. If there are negative pixels, 0 becomes 128,
// and the number with the largest magnitude becomes 255 or 1. Pixels that are not finite become
// `bad`.
template <class T>
void Normalise(absl::Span<const T> values, absl::Span<const uint8_t> bad, uint8_t* bytes) {
  const size_t channels = bad.size();
  const auto finite = [&](size_t pixel) {
    return std::all_of(&values[pixel], &values[pixel] + channels,
                       [](T v) { return std::isfinite(static_cast<double>(v)); });
  };
  auto low = std::numeric_limits<float>::infinity(), high = -low;
  for (size_t pixel = 0; pixel < values.size(); pixel += channels) {
    if (!finite(pixel)) continue;
    for (size_t c = 0; c < channels; ++c) {
      low = std::min(low, static_cast<float>(values[pixel + c]));
      high = std::max(high, static_cast<float>(values[pixel + c]));
    }
  }
  constexpr float kNearlyZero = 1e-6f;
  const float most = low < 0 ? std::max(std::abs(low), std::abs(high)) : high;
  const T scale(most < kNearlyZero ? 0 : (low < 0 ? 127.0f : 255.0f) / most);
  const T offset(low < 0 ? 128.0f : 0.0f);
  for (size_t pixel = 0; pixel < values.size(); pixel += channels) {
    const bool good = finite(pixel);
    for (size_t c = 0; c < channels; ++c) {
      // Rounds to T after each step, as TensorFlow does.
      const T scaled = good ? T(T(values[pixel + c] * scale) + offset) : T(0.0f);
      bytes[pixel + c] = good ? static_cast<uint8_t>(static_cast<float>(scaled)) : bad[c];
    }
  }
}

Status CheckImages(const Tensor& images, size_t bad_color) {
  const Shape& shape = images.shape();
  if (shape.rank() != 4 || (shape.dim(3) != 1 && shape.dim(3) != 3 && shape.dim(3) != 4)) {
    return InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ", shape.ToString());
  }
  constexpr int64_t kSideMax = 1'000'000;  // libpng's limit
  if (images.num_elements() == 0 || shape.dim(1) > kSideMax || shape.dim(2) > kSideMax) {
    return InvalidArgument("input tensor must have non-zero dims, and sides of at most ", kSideMax,
                           ". Found: ", shape.ToString(), ".");
  }
  if (images.dtype() != DType::kUint8 && static_cast<int64_t>(bad_color) < shape.dim(3)) {
    return InvalidArgument("expected depth <= bad_color.size, got depth = ", shape.dim(3),
                           ", bad_color.size = ", bad_color);
  }
  return OkStatus();
}

template <class T>
void PixelsOf(const Tensor& images, int64_t index, absl::Span<const uint8_t> bad_color,
              std::vector<uint8_t>* pixels) {
  const T* const values = images.data<T>() + index * static_cast<int64_t>(pixels->size());
  if constexpr (std::is_same_v<T, uint8_t>) {
    std::copy_n(values, pixels->size(), pixels->data());
  } else {
    Normalise<T>({values, pixels->size()}, bad_color, pixels->data());
  }
}

class ImageSummaryKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("max_images", &images_max_));
    return node.Attr("bad_color", &bad_color_);
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string tag, TagInput(ctx));
    SummaryBuilder summary;
    RETURN_IF_ERROR(AddImages(tag, ctx.input(1), images_max_, bad_color_, &summary));
    return OutputSummary(ctx, summary);
  }

 private:
  int64_t images_max_ = 0;
  Tensor bad_color_;
};

Tensor Red() {
  Tensor red(DType::kUint8, {4});
  const uint8_t bytes[] = {255, 0, 0, 255};
  std::copy_n(bytes, 4, red.mutable_data<uint8_t>());
  return red;
}

OP(ImageSummary) {
  return {
      .doc =
          "Makes a summary of images in PNG format. Bytes are stored unchanged; other "
          "numbers are scaled so that each image uses the full range. bad_color marks "
          "pixels that are not finite.",
      .inputs = {{"tag", "string"}, {"tensor", "T"}},
      .outputs = {{"summary", "string"}},
      .types = {{"T", {DType::kUint8, DType::kFloat, DType::kHalf, DType::kDouble}, DType::kFloat}},
      .attrs = {{"max_images", Ints{.min = 1}, 3}, {"bad_color", Tensors{}, Red()}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{}}, {{{1, 2, 2, 3}}}}}},
  };
}
KERNEL_ANY_TYPE(ImageSummary, ImageSummaryKernel);

}  // namespace

Status AddImages(const std::string& tag, const Tensor& images, int64_t most,
                 const Tensor& bad_color, SummaryBuilder* summary) {
  if (bad_color.dtype() != DType::kUint8) {
    return InvalidArgument("bad_color must be uint8, got ", Name(bad_color.dtype()));
  }
  if (bad_color.rank() != 1) {
    return InvalidArgument("bad_color must be a vector, got shape ", bad_color.shape().ToString());
  }
  RETURN_IF_ERROR(CheckImages(images, bad_color.num_elements()));
  const int64_t height = images.dim(1), width = images.dim(2), channels = images.dim(3);
  std::vector<uint8_t> pixels(height * width * channels);
  for (int64_t i = 0; i < std::min(most, images.dim(0)); ++i) {
    const auto convert = images.dtype() == DType::kUint8    ? PixelsOf<uint8_t>
                         : images.dtype() == DType::kHalf   ? PixelsOf<half>
                         : images.dtype() == DType::kDouble ? PixelsOf<double>
                                                            : PixelsOf<float>;
    const size_t used = images.dtype() == DType::kUint8 ? 0 : static_cast<size_t>(channels);
    convert(images, i, bad_color.flat<uint8_t>().subspan(0, used), &pixels);
    SummaryBuilder::Image image{static_cast<int>(height), static_cast<int>(width),
                                static_cast<int>(channels)};
    constexpr int kUsualCompression = -1;
    RETURN_IF_ERROR(EncodePng(pixels.data(), {1, height, width, channels}, /*wide=*/false,
                              kUsualCompression, &image.png));
    summary->AddImage(TagOfPart(tag, "image", i, most), std::move(image));
  }
  return OkStatus();
}

}  // namespace penstock
