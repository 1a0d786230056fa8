// SPDX-License-Identifier: Apache-2.0
//
// Decodes GIFs record by record, and checks all sizes before it decodes a frame: giflib's own
// function for whole files would allocate any amount of memory that a header names.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/image/codec.h"

namespace penstock {
namespace {

int ReadBytes(GifFileType* gif, GifByteType* to, int n) {
  auto* data = static_cast<string_view*>(gif->UserData);
  const size_t take = std::min(data->size(), static_cast<size_t>(n));
  std::memcpy(to, data->data(), take);
  data->remove_prefix(take);
  return static_cast<int>(take);
}

struct Close {
  void operator()(GifFileType* gif) const {
    int error;
    DGifCloseFile(gif, &error);
  }
};

using GifFile = std::unique_ptr<GifFileType, Close>;

// Opens the GIF at the beginning of `*data`. Every read, also of a frame, removes from `*data` the
// bytes that it has read. Returns null if the header is malformed.
GifFile Open(string_view* data) {
  int error = 0;
  return GifFile(DGifOpen(data, ReadBytes, &error));
}

Status Invalid(const GifFileType& gif) {
  const char* why = GifErrorString(gif.Error);
  return InvalidArgument("Invalid GIF data: ", why == nullptr ? "unknown error" : why);
}

// Finds the size of the canvas: the width of the widest frame and the height of the highest. Stops
// at a malformed frame; later frames do not count.
class GifMeasure {
 public:
  explicit GifMeasure(GifFileType& gif) : gif_(gif) {}

  ImageSize Measure() {
    ImageSize size{.frames = 0, .height = 0, .width = 0, .channels = 3};
    GifRecordType record;
    while (DGifGetRecordType(&gif_, &record) == GIF_OK && record != TERMINATE_RECORD_TYPE) {
      if (record == EXTENSION_RECORD_TYPE && !SkipExtension()) break;
      if (record != IMAGE_DESC_RECORD_TYPE) continue;
      if (DGifGetImageDesc(&gif_) == GIF_ERROR || !SkipPixels()) break;
      size.height = std::max<int64_t>(size.height, gif_.Image.Height);
      size.width = std::max<int64_t>(size.width, gif_.Image.Width);
    }
    return size;
  }

 private:
  bool SkipExtension() {
    int code;
    GifByteType* block;
    if (DGifGetExtension(&gif_, &code, &block) == GIF_ERROR) return false;
    while (block != nullptr) {
      if (DGifGetExtensionNext(&gif_, &block) == GIF_ERROR) return false;
    }
    return true;
  }
  bool SkipPixels() {
    int code_size;
    GifByteType* block;
    if (DGifGetCode(&gif_, &code_size, &block) == GIF_ERROR) return false;
    while (block != nullptr) {
      if (DGifGetCodeNext(&gif_, &block) == GIF_ERROR) return false;
    }
    return true;
  }

  GifFileType& gif_;
};

class GifReader {
 public:
  // `canvas` is the size to which each frame is extended.
  GifReader(GifFileType& gif, const ImageSize& canvas) : gif_(gif), size_(canvas) {}

  // Appends the frames, or only the first one if `first_only`, to pixels(). Stops at a malformed
  // frame with InvalidArgument.
  Status Read(bool first_only) {
    for (;;) {
      GifRecordType record;
      if (DGifGetRecordType(&gif_, &record) == GIF_ERROR) return Invalid(gif_);
      if (record == TERMINATE_RECORD_TYPE) return OkStatus();
      if (record == EXTENSION_RECORD_TYPE) {
        RETURN_IF_ERROR(ReadExtension());
      } else if (record == IMAGE_DESC_RECORD_TYPE) {
        RETURN_IF_ERROR(ReadFrame());
        ++complete_;
        transparent_ = NO_TRANSPARENT_COLOR;
        if (first_only) return OkStatus();
      }
    }
  }
  // Returns the size of the frames that are complete.
  ImageSize size() const {
    ImageSize size = size_;
    size.frames = complete_;
    return size;
  }
  const std::vector<uint8_t>& pixels() const { return pixels_; }

 private:
  Status ReadExtension() {
    int code;
    GifByteType* block;  // the block's length, followed by its bytes
    if (DGifGetExtension(&gif_, &code, &block) == GIF_ERROR) return Invalid(gif_);
    while (block != nullptr) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent_ = control.TransparentColor;
      }
      if (DGifGetExtensionNext(&gif_, &block) == GIF_ERROR) return Invalid(gif_);
    }
    return OkStatus();
  }

  Status ReadFrame() {
    if (DGifGetImageDesc(&gif_) == GIF_ERROR) return Invalid(gif_);
    const GifImageDesc& frame = gif_.Image;
    if (frame.Width < 1 || frame.Height < 1 || frame.Left < 0 || frame.Top < 0) {
      return InvalidArgument("Invalid GIF data: a frame of ", frame.Width, " x ", frame.Height);
    }
    const bool first = pixels_.empty();
    ++size_.frames;
    RETURN_IF_ERROR(size_.Check("GIF"));
    const size_t one = size_.height * size_.width * 3, begin = pixels_.size();
    pixels_.resize(begin + one);
    // Pixels that a frame does not cover keep their values.
    if (!first) std::copy_n(pixels_.data() + begin - one, one, pixels_.data() + begin);
    return DrawFrame(frame, pixels_.data() + begin);
  }

  Status DrawFrame(const GifImageDesc& frame, uint8_t* canvas) {
    const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif_.SColorMap;
    if (colors == nullptr) return InvalidArgument("Invalid GIF data: a frame without colors");
    // The first row and the step of each interlaced pass.
    constexpr int kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
    std::vector<GifPixelType> line(frame.Width);
    for (int pass = 0; pass < (frame.Interlace ? 4 : 1); ++pass) {
      for (int r = frame.Interlace ? kFirst[pass] : 0; r < frame.Height;
           r += frame.Interlace ? kStep[pass] : 1) {
        if (DGifGetLine(&gif_, line.data(), frame.Width) == GIF_ERROR) return Invalid(gif_);
        if (frame.Top + r >= size_.height) continue;
        RETURN_IF_ERROR(DrawLine(frame, *colors, line, canvas, frame.Top + r));
      }
    }
    return OkStatus();
  }

  Status DrawLine(const GifImageDesc& frame, const ColorMapObject& colors,
                  const std::vector<GifPixelType>& line, uint8_t* canvas, int64_t row) const {
    const int64_t columns = std::min<int64_t>(frame.Width, size_.width - frame.Left);
    for (int64_t i = 0; i < columns; ++i) {
      const int color = line[i];
      if (color == transparent_) continue;
      if (color >= colors.ColorCount) {
        return InvalidArgument("Invalid GIF data: color ", color, " of ", colors.ColorCount);
      }
      uint8_t* to = canvas + (row * size_.width + frame.Left + i) * 3;
      to[0] = colors.Colors[color].Red;
      to[1] = colors.Colors[color].Green;
      to[2] = colors.Colors[color].Blue;
    }
    return OkStatus();
  }

  GifFileType& gif_;
  int transparent_ = NO_TRANSPARENT_COLOR;
  ImageSize size_;
  int64_t complete_ = 0;
  std::vector<uint8_t> pixels_;
};

}  // namespace

Status DecodeGif(string_view data, bool first_only, PixelSink sink) {
  string_view measured = data;
  const GifFile twin = Open(&measured), gif = Open(&data);
  if (twin == nullptr || gif == nullptr) return InvalidArgument("Invalid GIF header");
  GifReader reader(*gif, GifMeasure(*twin).Measure());
  const Status read = reader.Read(first_only);
  // Returns the frames before a malformed frame, if there are any.
  if (!read.ok() && reader.size().frames == 0) return read;
  const ImageSize size = reader.size();
  RETURN_IF_ERROR(size.Check("GIF"));
  ASSIGN_OR_RETURN(void* const pixels, sink(size));
  std::copy_n(reader.pixels().data(), size.elements(), static_cast<uint8_t*>(pixels));
  return OkStatus();
}

}  // namespace penstock
