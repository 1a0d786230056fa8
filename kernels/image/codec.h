// SPDX-License-Identifier: Apache-2.0
//
// Codecs: decode PNG, JPEG, GIF and BMP images to pixels, and encode pixels as PNG and JPEG. They
// use libpng, libjpeg-turbo and giflib.
//
// The data is untrusted: decoding any data returns pixels or InvalidArgument. It takes no more
// memory than the pixels need, and there are at most kPixelsMax pixels (times channels and frames).
// Thread-safe. Data is borrowed during the call.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"

namespace penstock {

inline constexpr int64_t kPixelsMax = int64_t{1} << 29;

struct ImageSize {
  int64_t frames = 1, height = 0, width = 0, channels = 0;
  int64_t elements() const { return frames * height * width * channels; }
  // Checks the size. InvalidArgument if there are no pixels, or too many.
  Status Check(const char* format) const;
};

// Returns memory for the pixels. Called once, when the size is known.
using PixelSink = absl::FunctionRef<StatusOr<void*>(const ImageSize&)>;

// Decode and encode PNG. `channels`: 1 grey, 2 grey with alpha, 3 RGB, 4 RGB with alpha; 0: as in
// the file. Pixels are uint8, or uint16 if `wide`.
Status DecodePng(string_view data, int channels, bool wide, PixelSink sink);
Status EncodePng(const void* pixels, const ImageSize& size, bool wide, int compression,
                 std::string* png);

struct JpegDecoding {
  int channels = 0;  // 1, 3 or 0 (as in the file)
  int ratio = 1;     // downscaling while decoding: 1, 2, 4 or 8
  bool fancy_upscaling = true;
  // Accept truncated data that has at least acceptable_fraction of the rows.
  bool recover_truncated = false;
  float acceptable_fraction = 1;
  bool accurate = false;  // use the slower, more accurate inverse cosine transform
};
Status DecodeJpeg(string_view data, const JpegDecoding& options, PixelSink sink);
// Returns the size and the number of components, reading only the header.
StatusOr<ImageSize> JpegSize(string_view data);

struct JpegEncoding {
  int quality = 95;
  bool progressive = false, optimize_size = false, chroma_downsampling = true;
  bool density_per_cm = false;  // true: dots per centimetre; false: per inch
  int x_density = 300, y_density = 300;
  std::string xmp_metadata;
};
// Encodes 1 (grey) or 3 channels. InvalidArgument if the size or the metadata exceed what the
// format can hold.
Status EncodeJpeg(const uint8_t* pixels, const ImageSize& size, const JpegEncoding& options,
                  std::string* jpeg);

// Decodes the frames to RGB. Each includes the parts of earlier frames that it does not cover.
// `first_only`: decodes only the first one.
Status DecodeGif(string_view data, bool first_only, PixelSink sink);

// Decodes an uncompressed BMP of 8, 24 or 32 bits; `channels` is 3, 4 or 0 (as in the file).
Status DecodeBmp(string_view data, int channels, PixelSink sink);

enum class ImageFormat { kUnknown, kPng, kJpeg, kGif, kBmp };
ImageFormat FormatOf(string_view data);

}  // namespace penstock
