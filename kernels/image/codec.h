// SPDX-License-Identifier: Apache-2.0
//
// Codecs: compressed images to pixels and back, over libpng, libjpeg-turbo and giflib.
//
// The data is foreign: whatever it holds ends in pixels or in InvalidArgument, and no more memory
// is taken than the pixels need, of which there are at most kPixelsMax (times channels and frames).
// Thread-safe. Data is borrowed for the time of the call.
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
  // InvalidArgument if there are none, or too many.
  Status Check(const char* format) const;
};

// Returns memory for the pixels; called once, when the size is known.
using PixelSink = absl::FunctionRef<StatusOr<void*>(const ImageSize&)>;

// `channels`: 1 grey, 2 with alpha, 3 RGB, 4 with alpha; 0: what there is in the file. Pixels are
// uint8, or uint16 if `wide`.
Status DecodePng(string_view data, int channels, bool wide, PixelSink sink);
Status EncodePng(const void* pixels, const ImageSize& size, bool wide, int compression,
                 std::string* png);

struct JpegDecoding {
  int channels = 0;  // 1, 3 or 0
  int ratio = 1;     // downscaling while decoding: 1, 2, 4 or 8
  bool fancy_upscaling = true;
  bool recover_truncated = false;  // if at least this fraction of the rows is there:
  float acceptable_fraction = 1;
  bool accurate = false;  // the slower inverse cosine transform
};
Status DecodeJpeg(string_view data, const JpegDecoding& options, PixelSink sink);
// Size and components from the header alone.
StatusOr<ImageSize> JpegSize(string_view data);

struct JpegEncoding {
  int quality = 95;
  bool progressive = false, optimize_size = false, chroma_downsampling = true;
  bool density_per_cm = false;  // else per inch
  int x_density = 300, y_density = 300;
  std::string xmp_metadata;
};
// Encodes 1 (grey) or 3 channels.
Status EncodeJpeg(const uint8_t* pixels, const ImageSize& size, const JpegEncoding& options,
                  std::string* jpeg);

// Frames as they are shown one after the other, in RGB. `first_only`: the others are not decoded.
Status DecodeGif(string_view data, bool first_only, PixelSink sink);

// Uncompressed, of 8, 24 or 32 bits; `channels` 3, 4 or 0.
Status DecodeBmp(string_view data, int channels, PixelSink sink);

enum class ImageFormat { kUnknown, kPng, kJpeg, kGif, kBmp };
ImageFormat FormatOf(string_view data);

}  // namespace penstock
