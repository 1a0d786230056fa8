// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include "kernels/summary/media.h"

namespace penstock {

StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int height, int width,
                                int channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  constexpr int kNoConversion = 0;
  png_alloc_size_t bytes = 0;
  const auto write = [&](void* to) {
    return png_image_write_to_memory(&image, to, &bytes, kNoConversion, pixels.data(),
                                     /*row_stride=*/0, /*colormap=*/nullptr) != 0;
  };
  std::string png;
  if (!write(nullptr)) return Internal("PNG: ", image.message);
  png.resize(bytes);
  if (!write(png.data())) return Internal("PNG: ", image.message);
  png.resize(bytes);
  return png;
}

}  // namespace penstock
