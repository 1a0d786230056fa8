// SPDX-License-Identifier: Apache-2.0
//
// Decodes and encodes JPEG by libjpeg. libjpeg reports errors through a handler that must not
// return, so our handler calls longjmp. Between setjmp and the calls that may fail, a function has
// only local objects without destructors; an object that outlives the jump owns their memory.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/image/codec.h"

// Included after <cstdio>, on which it depends.
#include <jpeglib.h>

namespace penstock {
namespace {

struct JpegError {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "unknown error";

  jpeg_error_mgr* Install() {
    jpeg_std_error(&manager);
    manager.error_exit = [](j_common_ptr info) {
      auto* error = reinterpret_cast<JpegError*>(info->err);
      info->err->format_message(info, error->message);
      longjmp(error->jump, 1);
    };
    manager.output_message = [](j_common_ptr) {
    };  // libjpeg calls this function for warnings; they are ignored
    return &manager;
  }
};

// Reads from memory and records whether the data ended before the image did.
struct MemorySource {
  jpeg_source_mgr manager;
  bool truncated = false;

  jpeg_source_mgr* Install(string_view data) {
    manager.init_source = [](j_decompress_ptr) {};
    manager.term_source = [](j_decompress_ptr) {};
    manager.resync_to_restart = jpeg_resync_to_restart;
    manager.fill_input_buffer = [](j_decompress_ptr info) -> boolean {
      static const JOCTET kEnd[] = {0xff, JPEG_EOI};
      reinterpret_cast<MemorySource*>(info->src)->truncated = true;
      info->src->next_input_byte = kEnd;
      info->src->bytes_in_buffer = 2;
      return TRUE;
    };
    manager.skip_input_data = [](j_decompress_ptr info, long n) {  // NOLINT: libjpeg's type
      if (n <= 0) return;
      if (static_cast<size_t>(n) > info->src->bytes_in_buffer) {
        info->src->fill_input_buffer(info);
        return;
      }
      info->src->next_input_byte += n;
      info->src->bytes_in_buffer -= n;
    };
    manager.next_input_byte = reinterpret_cast<const JOCTET*>(data.data());
    manager.bytes_in_buffer = data.size();
    return &manager;
  }
};

class JpegReader {
 public:
  explicit JpegReader(string_view data) {
    info_.err = error_.Install();
    if (setjmp(error_.jump) != 0) return;
    jpeg_create_decompress(&info_);
    info_.src = source_.Install(data);
    created_ = true;
  }
  ~JpegReader() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool ReadHeader() {
    if (!created_ || setjmp(error_.jump) != 0) return false;
    jpeg_read_header(&info_, TRUE);
    jpeg_calc_output_dimensions(&info_);
    return !source_.truncated;
  }
  ImageSize header_size() const {
    return {1, info_.image_height, info_.image_width, info_.num_components};
  }

  bool Start(const JpegDecoding& options) {
    if (setjmp(error_.jump) != 0) return false;
    cmyk_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    int channels = options.channels;
    if (channels == 0) channels = info_.num_components == 1 ? 1 : 3;
    info_.out_color_space = cmyk_ ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (cmyk_ && channels == 1) return false;
    info_.scale_num = 1;
    info_.scale_denom = options.ratio;
    info_.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
    info_.dct_method = options.accurate ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_calc_output_dimensions(&info_);
    size_ = {1, info_.output_height, info_.output_width, channels};
    return true;
  }
  const ImageSize& size() const { return size_; }

  // Reads the pixels. Returns false if libjpeg reports an error. libjpeg fills in the rows that the
  // data lacks. `line` is memory for a row of a CMYK file.
  bool ReadRows(unsigned char* pixels, unsigned char* line) {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    const int64_t row = size_.width * size_.channels;
    while (info_.output_scanline < info_.output_height) {
      unsigned char* to = pixels + info_.output_scanline * row;
      JSAMPROW rows[] = {cmyk_ ? line : to};
      jpeg_read_scanlines(&info_, rows, 1);
      if (cmyk_) ToRgb(line, to);
      if (!source_.truncated) ++rows_read_;
    }
    jpeg_finish_decompress(&info_);
    return true;
  }
  bool truncated() const { return source_.truncated; }
  int64_t rows_read() const { return rows_read_; }
  const char* error() const { return error_.message; }

 private:
  // Converts a row. If the file has Adobe's marker, inverts the inks, because Adobe's programs
  // store inverted inks.
  void ToRgb(const unsigned char* cmyk, unsigned char* rgb) const {
    for (int64_t i = 0; i < size_.width; ++i) {
      const int k = cmyk[4 * i + 3];
      for (int c = 0; c < 3; ++c) {
        const int ink = cmyk[4 * i + c];
        rgb[3 * i + c] = static_cast<unsigned char>(
            info_.saw_Adobe_marker ? k * ink / 255 : (255 - k) * (255 - ink) / 255);
      }
    }
  }

  jpeg_decompress_struct info_ = {};
  JpegError error_;
  MemorySource source_;
  ImageSize size_;
  int64_t rows_read_ = 0;
  bool created_ = false, cmyk_ = false;
};

class JpegWriter {
 public:
  JpegWriter() {
    info_.err = error_.Install();
    if (setjmp(error_.jump) != 0) return;
    jpeg_create_compress(&info_);
    created_ = true;
  }
  ~JpegWriter() {
    if (created_) jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  bool Write(const uint8_t* pixels, const ImageSize& size, const JpegEncoding& options,
             const unsigned char* marker, unsigned marker_size) {
    if (!created_ || setjmp(error_.jump) != 0) return false;
    jpeg_mem_dest(&info_, &buffer_, &bytes_);
    info_.image_width = static_cast<JDIMENSION>(size.width);
    info_.image_height = static_cast<JDIMENSION>(size.height);
    info_.input_components = static_cast<int>(size.channels);
    info_.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    if (options.optimize_size) info_.optimize_coding = TRUE;
    info_.density_unit = options.density_per_cm ? 2 : 1;
    info_.X_density = static_cast<UINT16>(options.x_density);
    info_.Y_density = static_cast<UINT16>(options.y_density);
    jpeg_set_quality(&info_, options.quality, TRUE);
    if (options.progressive) jpeg_simple_progression(&info_);
    if (!options.chroma_downsampling) {
      for (int c = 0; c < info_.num_components; ++c) {
        info_.comp_info[c].h_samp_factor = 1;
        info_.comp_info[c].v_samp_factor = 1;
      }
    }
    jpeg_start_compress(&info_, TRUE);
    if (marker_size > 0) jpeg_write_marker(&info_, JPEG_APP0 + 1, marker, marker_size);
    while (info_.next_scanline < info_.image_height) {
      JSAMPROW row[] = {const_cast<JSAMPROW>(pixels) +
                        info_.next_scanline * size.width * size.channels};
      jpeg_write_scanlines(&info_, row, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }
  string_view result() const { return {reinterpret_cast<const char*>(buffer_), bytes_}; }
  const char* error() const { return error_.message; }

 private:
  jpeg_compress_struct info_ = {};
  JpegError error_;
  unsigned char* buffer_ = nullptr;
  unsigned long bytes_ = 0;  // NOLINT: libjpeg's type
  bool created_ = false;
};

}  // namespace

Status DecodeJpeg(string_view data, const JpegDecoding& options, PixelSink sink) {
  JpegReader reader(data);
  if (!reader.ReadHeader() || !reader.Start(options)) {
    return InvalidArgument("Invalid JPEG header, size ", data.size(), ": ", reader.error());
  }
  const ImageSize size = reader.size();
  RETURN_IF_ERROR(size.Check("JPEG"));
  ASSIGN_OR_RETURN(void* const memory, sink(size));
  auto* const pixels = static_cast<unsigned char*>(memory);
  std::vector<unsigned char> line(4 * size.width);
  if (!reader.ReadRows(pixels, line.data())) {
    return InvalidArgument("Invalid JPEG data, size ", data.size(), ": ", reader.error());
  }
  const float fraction = static_cast<float>(reader.rows_read()) / static_cast<float>(size.height);
  if (reader.truncated() &&
      (!options.recover_truncated || fraction < options.acceptable_fraction)) {
    return InvalidArgument("Invalid JPEG data, size ", data.size(), ": it ends after ",
                           reader.rows_read(), " of ", size.height, " rows");
  }
  return OkStatus();
}

StatusOr<ImageSize> JpegSize(string_view data) {
  JpegReader reader(data);
  if (reader.ReadHeader()) return reader.header_size();
  return InvalidArgument("Invalid JPEG header, size ", data.size(), ": ", reader.error());
}

Status EncodeJpeg(const uint8_t* pixels, const ImageSize& size, const JpegEncoding& options,
                  std::string* jpeg) {
  constexpr int64_t kMax = 65500;  // the format's limit for a side
  if (size.height < 1 || size.width < 1 || size.height > kMax || size.width > kMax) {
    return InvalidArgument("a JPEG has 1 to ", kMax, " rows and columns, not ", size.height, " x ",
                           size.width);
  }
  std::string marker;
  if (!options.xmp_metadata.empty()) {
    marker = std::string("http://ns.adobe.com/xap/1.0/").append(1, '\0') + options.xmp_metadata;
    if (marker.size() > 65533) {
      return InvalidArgument("xmp_metadata has ", options.xmp_metadata.size(),
                             " bytes, more than one marker of a JPEG holds");
    }
  }
  JpegWriter writer;
  if (!writer.Write(pixels, size, options, reinterpret_cast<const unsigned char*>(marker.data()),
                    static_cast<unsigned>(marker.size()))) {
    return Internal("JPEG: ", writer.error());
  }
  const string_view result = writer.result();
  jpeg->assign(result.data(), result.size());
  return OkStatus();
}

}  // namespace penstock
