// SPDX-License-Identifier: Apache-2.0
//
// Decodes and encodes PNG by libpng, which reports errors by longjmp. Between setjmp and the calls
// that may fail, a function has only local objects without destructors; an object that outlives the
// jump owns their memory.
#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/image/codec.h"

namespace penstock {
namespace {

struct PngError {
  char message[128] = "unknown error";
};
void OnError(png_structp png, png_const_charp message) {
  auto* error = static_cast<PngError*>(png_get_error_ptr(png));
  std::snprintf(error->message, sizeof error->message, "%s", message);
  longjmp(png_jmpbuf(png), 1);
}
void OnWarning(png_structp, png_const_charp) {}

class PngReader {
 public:
  explicit PngReader(string_view data) : data_(data) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &error_, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Reads the header and chooses the conversions. Returns false if libpng reports an error.
  bool ReadHeader(int channels, bool wide) {
    if (png_ == nullptr || info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, size_t n) {
      auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
      if (reader->data_.size() < n) png_error(png, "ends too early");
      std::memcpy(to, reader->data_.data(), n);
      reader->data_.remove_prefix(n);
    });
    png_set_user_limits(png_, kPixelsMax, kPixelsMax);
    png_set_chunk_malloc_max(png_, 1 << 23);
    png_read_info(png_, info_);
    const png_byte color = png_get_color_type(png_, info_);
    const bool transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0 || transparent;
    const bool has_color = (color & PNG_COLOR_MASK_COLOR) != 0;
    channels_ = channels;
    if (channels_ == 0 && color == PNG_COLOR_TYPE_PALETTE) channels_ = transparent ? 4 : 3;
    if (channels_ == 0) channels_ = png_get_channels(png_, info_);
    png_set_packing(png_);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (!has_color) png_set_expand_gray_1_2_4_to_8(png_);
    if (transparent) png_set_tRNS_to_alpha(png_);
    if (channels_ % 2 == 1 && has_alpha) png_set_strip_alpha(png_);
    if (channels_ % 2 == 0 && !has_alpha) png_set_add_alpha(png_, 0xffff, PNG_FILLER_AFTER);
    if (channels_ >= 3 && !has_color) png_set_gray_to_rgb(png_);
    if (channels_ < 3 && has_color) png_set_rgb_to_gray(png_, 1, 0.299, 0.587);
    if (wide) {
      png_set_expand_16(png_);
      if (std::endian::native == std::endian::little) png_set_swap(png_);
    } else {
      png_set_strip_16(png_);
    }
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  ImageSize size() const {
    return {1, png_get_image_height(png_, info_), png_get_image_width(png_, info_), channels_};
  }
  // Returns the number of bytes that libpng writes per row.
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }

  bool ReadRows(unsigned char* pixels, int64_t height) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    for (int pass = 0; pass < passes_; ++pass) {
      for (int64_t r = 0; r < height; ++r) {
        png_read_row(png_, pixels + r * row_bytes(), nullptr);
      }
    }
    png_read_end(png_, nullptr);
    return true;
  }
  const char* error() const { return error_.message; }

 private:
  string_view data_;
  PngError error_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int channels_ = 0, passes_ = 1;
};

class PngWriter {
 public:
  explicit PngWriter(std::string* png) : out_(png) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &error_, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  bool Write(const unsigned char* pixels, const ImageSize& size, bool wide, int compression) {
    if (png_ == nullptr || info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                               PNG_COLOR_TYPE_RGB_ALPHA};
    png_set_write_fn(
        png_, out_,
        [](png_structp png, png_bytep from, size_t n) {
          static_cast<std::string*>(png_get_io_ptr(png))
              ->append(reinterpret_cast<const char*>(from), n);
        },
        nullptr);
    if (compression >= 0) png_set_compression_level(png_, compression);
    png_set_IHDR(png_, info_, size.width, size.height, wide ? 16 : 8, kColors[size.channels - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    if (wide && std::endian::native == std::endian::little) png_set_swap(png_);
    const size_t row = size.width * size.channels * (wide ? 2 : 1);
    for (int64_t r = 0; r < size.height; ++r) png_write_row(png_, pixels + r * row);
    png_write_end(png_, info_);
    return true;
  }
  const char* error() const { return error_.message; }

 private:
  std::string* out_;
  PngError error_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

Status DecodePng(string_view data, int channels, bool wide, PixelSink sink) {
  PngReader reader(data);
  if (!reader.ReadHeader(channels, wide)) {
    return InvalidArgument("Invalid PNG header: ", reader.error());
  }
  const ImageSize size = reader.size();
  RETURN_IF_ERROR(size.Check("PNG"));
  if (reader.row_bytes() != static_cast<size_t>(size.width * size.channels * (wide ? 2 : 1))) {
    return InvalidArgument("Invalid PNG: its rows have ", reader.row_bytes(), " bytes");
  }
  ASSIGN_OR_RETURN(void* const pixels, sink(size));
  if (reader.ReadRows(static_cast<unsigned char*>(pixels), size.height)) return OkStatus();
  return InvalidArgument("Invalid PNG data, size ", data.size(), ": ", reader.error());
}

Status EncodePng(const void* pixels, const ImageSize& size, bool wide, int compression,
                 std::string* png) {
  png->clear();
  PngWriter writer(png);
  if (writer.Write(static_cast<const unsigned char*>(pixels), size, wide, compression)) {
    return OkStatus();
  }
  return Internal("PNG: ", writer.error());
}

}  // namespace penstock
