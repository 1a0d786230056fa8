// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/image/codec.h"

namespace penstock {

Status ImageSize::Check(const char* format) const {
  const bool some = frames > 0 && height > 0 && width > 0 && channels > 0;
  const bool few = some && height <= kPixelsMax && width <= kPixelsMax / height &&
                   frames <= kPixelsMax / (height * width);
  if (few && elements() <= 4 * kPixelsMax) return OkStatus();
  return InvalidArgument("a ", format, " of ", frames, " frames of ", height, " x ", width,
                         some ? " is too large" : " has no pixels");
}

ImageFormat FormatOf(string_view data) {
  const auto starts = [&](string_view magic) { return data.substr(0, magic.size()) == magic; };
  if (starts("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (starts("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (starts("GIF8")) return ImageFormat::kGif;
  if (starts("BM")) return ImageFormat::kBmp;
  return ImageFormat::kUnknown;
}

Status DecodeBmp(string_view data, int channels, PixelSink sink) {
  constexpr size_t kHeader = 32;  // the part of the header that is read
  if (data.size() < kHeader) {
    return InvalidArgument("Incomplete bmp content, requires at least ", kHeader, " bytes, has ",
                           data.size());
  }
  const auto number = [&](size_t at) {
    int32_t n;
    std::memcpy(&n, data.data() + at, sizeof n);
    return n;
  };
  const int64_t offset = static_cast<uint32_t>(number(10));
  const int64_t width = number(18), height = number(22);  // negative: the top row comes first
  uint16_t bits;
  std::memcpy(&bits, data.data() + 28, sizeof bits);
  if (bits != 8 && bits != 24 && bits != 32) {
    return InvalidArgument("bmp of ", bits, " bits per pixel; 8, 24 and 32 are supported");
  }
  if (channels != 0 && channels != 3 && channels != 4) {
    return InvalidArgument("`channels` must be 0, 3 or 4 for BMP, but got ", channels);
  }
  const int64_t stored = bits / 8;
  const ImageSize size = {1, std::abs(height), width, channels == 0 ? stored : channels};
  RETURN_IF_ERROR(size.Check("bmp"));
  const int64_t row = (bits * width + 31) / 32 * 4;
  if (offset > static_cast<int64_t>(data.size()) ||
      row * size.height > static_cast<int64_t>(data.size()) - offset) {
    return InvalidArgument("Incomplete bmp content: ", data.size(), " bytes, ",
                           offset + row * size.height, " needed");
  }
  ASSIGN_OR_RETURN(void* const memory, sink(size));
  auto* to = static_cast<uint8_t*>(memory);
  for (int64_t r = 0; r < size.height; ++r) {
    const int64_t from = offset + row * (height < 0 ? r : size.height - 1 - r);
    const auto* line = reinterpret_cast<const uint8_t*>(data.data()) + from;
    for (int64_t i = 0; i < width; ++i, to += size.channels, line += stored) {
      for (int64_t c = 0; c < std::min<int64_t>(size.channels, 3); ++c) {
        to[c] = line[stored == 1 ? 0 : 2 - c];  // the file has blue first
      }
      if (size.channels == 4) to[3] = stored == 4 ? line[3] : 255;
    }
  }
  return OkStatus();
}

}  // namespace penstock
