// SPDX-License-Identifier: Apache-2.0
//
// DecodeWav, EncodeWav: sounds as WAV files of 16-bit samples (RIFF, format 1).
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/summary/media.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little, "so are the numbers of a WAV file");

constexpr int64_t kAsInFile = -1;
constexpr float kSampleScale = 1.0f / 32768.0f;

// Reads the parts of a file in order. Borrows the file's bytes.
class WavReader {
 public:
  explicit WavReader(string_view file) : rest_(file) {}

  bool empty() const { return rest_.empty(); }
  // Returns the next `bytes` bytes. InvalidArgument if there are fewer.
  StatusOr<string_view> Take(size_t bytes, const char* what) {
    if (rest_.size() < bytes) {
      return InvalidArgument("Data too short for a WAV file: ", bytes, " bytes expected of ", what,
                             ", there are ", rest_.size());
    }
    const string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  Status Expect(string_view text) {
    ASSIGN_OR_RETURN(const string_view found, Take(text.size(), "a header"));
    if (found == text) return OkStatus();
    return InvalidArgument("Header mismatch: expected '", text, "' in a WAV file");
  }
  template <class T>
  StatusOr<T> Number(const char* what) {
    ASSIGN_OR_RETURN(const string_view bytes, Take(sizeof(T), what));
    T number;
    std::memcpy(&number, bytes.data(), sizeof(T));
    return number;
  }

 private:
  string_view rest_;
};

struct Wav {
  int64_t channels = 0;
  int32_t sample_rate = 0;
  string_view samples;  // 2 bytes each; the channels are interleaved

  int64_t frames() const { return static_cast<int64_t>(samples.size()) / (2 * channels); }
  float At(int64_t frame, int64_t channel) const {
    int16_t sample;
    std::memcpy(&sample, samples.data() + 2 * (frame * channels + channel), sizeof(sample));
    return static_cast<float>(sample) * kSampleScale;
  }
};

// Skips the chunks before the format chunk, such as JUNK, and the name of the format chunk.
// InvalidArgument if the file has no format chunk.
Status SkipToFormat(WavReader& reader) {
  for (;;) {
    ASSIGN_OR_RETURN(const string_view name, reader.Take(4, "a chunk's name"));
    if (name == "fmt ") return OkStatus();
    ASSIGN_OR_RETURN(const uint32_t bytes, reader.Number<uint32_t>("a chunk's size"));
    RETURN_IF_ERROR(reader.Take(bytes, "a chunk").status());
  }
}

Status ReadFormat(WavReader& reader, Wav* wav) {
  ASSIGN_OR_RETURN(const uint32_t bytes, reader.Number<uint32_t>("the format's size"));
  if (bytes != 16 && bytes != 18) {
    return InvalidArgument("Bad format chunk size for WAV: expected 16 or 18, got ", bytes);
  }
  ASSIGN_OR_RETURN(const uint16_t coding, reader.Number<uint16_t>("the format"));
  if (coding != 1) {
    return InvalidArgument("Bad audio format for WAV: expected 1 (PCM), got ", coding);
  }
  ASSIGN_OR_RETURN(wav->channels, reader.Number<uint16_t>("channels"));
  ASSIGN_OR_RETURN(const uint32_t rate, reader.Number<uint32_t>("the sample rate"));
  ASSIGN_OR_RETURN(const uint32_t per_second, reader.Number<uint32_t>("bytes per second"));
  ASSIGN_OR_RETURN(const uint16_t per_frame, reader.Number<uint16_t>("bytes per frame"));
  ASSIGN_OR_RETURN(const uint16_t bits, reader.Number<uint16_t>("bits per sample"));
  if (bits != 16) {
    return InvalidArgument("Can only read 16-bit WAV files, but received ", bits);
  }
  if (wav->channels == 0 || per_frame != 2 * wav->channels) {
    return InvalidArgument("Bad bytes per frame in WAV header: ", per_frame, " for ", wav->channels,
                           " channels");
  }
  if (per_second != uint64_t{rate} * per_frame || rate > 0x7FFFFFFF) {
    return InvalidArgument("Bad bytes per second in WAV header: ", per_second, " for ", rate,
                           " frames of ", per_frame, " bytes");
  }
  wav->sample_rate = static_cast<int32_t>(rate);
  return bytes == 18 ? reader.Take(2, "the format's end").status() : OkStatus();
}

StatusOr<Wav> ReadWav(string_view file) {
  WavReader reader(file);
  Wav wav;
  RETURN_IF_ERROR(reader.Expect("RIFF"));
  RETURN_IF_ERROR(reader.Take(4, "the file's size").status());
  RETURN_IF_ERROR(reader.Expect("WAVE"));
  RETURN_IF_ERROR(SkipToFormat(reader));
  RETURN_IF_ERROR(ReadFormat(reader, &wav));
  while (!reader.empty()) {
    ASSIGN_OR_RETURN(const string_view name, reader.Take(4, "a chunk's name"));
    ASSIGN_OR_RETURN(const uint32_t bytes, reader.Number<uint32_t>("a chunk's size"));
    ASSIGN_OR_RETURN(const string_view chunk, reader.Take(bytes, "a chunk"));
    if (name != "data") continue;
    wav.samples = chunk;
    return wav;
  }
  return InvalidArgument("No data chunk found in WAV");
}

class DecodeWavKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("desired_channels", &channels_));
    RETURN_IF_ERROR(node.Attr("desired_samples", &frames_));
    if (channels_ >= kAsInFile && frames_ >= kAsInFile) return OkStatus();
    return InvalidArgument("desired_channels and desired_samples must be >= -1, are ", channels_,
                           " and ", frames_);
  }

  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).num_elements() != 1) {
      return InvalidArgument("contents must be a scalar, has shape ",
                             ctx.input(0).shape().ToString());
    }
    ASSIGN_OR_RETURN(const Wav wav, ReadWav(ctx.input(0).scalar<std::string>()));
    const int64_t channels = channels_ == kAsInFile ? wav.channels : channels_;
    const int64_t frames = frames_ == kAsInFile ? wav.frames() : frames_;
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{frames, channels}));
    Tensor *audio, *rate;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &audio));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape(), &rate));
    float* to = audio->mutable_data<float>();
    const int64_t there = std::min(frames, wav.frames());
    for (int64_t frame = 0; frame < there; ++frame) {
      for (int64_t c = 0; c < channels; ++c) *to++ = wav.At(frame, std::min(c, wav.channels - 1));
    }
    std::fill_n(to, (frames - there) * channels, 0.0f);
    *rate->mutable_data<int32_t>() = wav.sample_rate;
    return OkStatus();
  }

 private:
  int64_t channels_ = kAsInFile, frames_ = kAsInFile;
};

class EncodeWavKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& audio = ctx.input(0);
    if (audio.rank() != 2) {
      return InvalidArgument("audio must have rank 2, has shape ", audio.shape().ToString());
    }
    ASSIGN_OR_RETURN(const int64_t rate, IntScalar(ctx.input(1), "sample_rate"));
    Tensor* contents;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape(), &contents));
    ASSIGN_OR_RETURN(*contents->mutable_data<std::string>(),
                     EncodeWav(audio.flat<float>(), static_cast<double>(rate), audio.dim(1)));
    return OkStatus();
  }
};

Status DecodeShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  Dims dims;
  for (const char* name : {"desired_samples", "desired_channels"}) {
    const int64_t size = s.attr<int64_t>(name);
    if (size < kAsInFile) return InvalidArgument(name, " must be >= -1, is ", size);
    dims.push_back(size);  // kAsInFile: unknown
  }
  s.set_output(0, PartialShape(dims));
  s.set_output(1, PartialShape::Scalar());
  return OkStatus();
}

Status EncodeShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 2).status());
  s.set_output(0, PartialShape::Scalar());
  return OkStatus();
}

}  // namespace

OP(DecodeWav) {
  return {
      .doc =
          "Decodes a 16-bit WAV file into samples in [-1, 1), [frames, channels], and the "
          "sample rate. desired_channels repeats the last channel or drops channels; "
          "desired_samples adds silence or cuts the end.",
      .inputs = {{"contents", "string"}},
      .outputs = {{"audio", "float"}, {"sample_rate", "int32"}},
      .attrs = {{"desired_channels", -1}, {"desired_samples", -1}},
      .shape = DecodeShape,
      .gradient = NoGradient,
      .untestable_alone = "needs a file: kernels/audio has its tests",
  };
}
KERNEL_ANY_TYPE(DecodeWav, DecodeWavKernel);

OP(EncodeWav) {
  return {
      .doc =
          "Encodes samples in [-1, 1], [frames, channels], as a 16-bit WAV file. Samples "
          "outside the range are clipped.",
      .inputs = {{"audio", "float"}, {"sample_rate", "int32"}},
      .outputs = {{"contents", "string"}},
      .shape = EncodeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{4, 2}}}, {{{}, {8000}}}}}},
  };
}
KERNEL_ANY_TYPE(EncodeWav, EncodeWavKernel);

}  // namespace penstock
