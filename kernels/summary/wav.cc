// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/summary/media.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little, "so are the numbers of a WAV file");

// The header of a WAV file: each chunk's name and size, then its content.
struct Header {
  char riff[4] = {'R', 'I', 'F', 'F'};
  uint32_t bytes_after_this;
  char wave[4] = {'W', 'A', 'V', 'E'};
  char format[4] = {'f', 'm', 't', ' '};
  uint32_t format_bytes = 16;
  uint16_t pcm = 1;
  uint16_t channels;
  uint32_t sample_rate;
  uint32_t bytes_per_second;
  uint16_t bytes_per_frame;
  uint16_t bits_per_sample = 16;
  char data[4] = {'d', 'a', 't', 'a'};
  uint32_t data_bytes;
};
static_assert(sizeof(Header) == 44);

int16_t Sample(float value) {
  return static_cast<int16_t>(std::clamp(std::round(value * 32768.0f), -32768.0f, 32767.0f));
}

}  // namespace

StatusOr<std::string> EncodeWav(absl::Span<const float> samples, double sample_rate,
                                int64_t channels) {
  constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
  const int64_t bytes = static_cast<int64_t>(samples.size()) * 2;
  const int64_t rate = sample_rate < 4e9 ? std::lrint(sample_rate) : kMax;
  if (channels < 1 || channels > std::numeric_limits<uint16_t>::max() / 2) {
    return InvalidArgument("a WAV file cannot have ", channels, " channels");
  }
  if (rate < 1 || rate * channels * 2 > kMax) {
    return InvalidArgument("a WAV file cannot have ", sample_rate, " samples per second of ",
                           channels, " channels");
  }
  if (bytes > kMax - static_cast<int64_t>(sizeof(Header))) {
    return InvalidArgument("a WAV file cannot hold ", samples.size(), " samples");
  }
  const Header header{
      .bytes_after_this = static_cast<uint32_t>(sizeof(Header) - 8 + bytes),
      .channels = static_cast<uint16_t>(channels),
      .sample_rate = static_cast<uint32_t>(rate),
      .bytes_per_second = static_cast<uint32_t>(rate * channels * 2),
      .bytes_per_frame = static_cast<uint16_t>(channels * 2),
      .data_bytes = static_cast<uint32_t>(bytes),
  };
  std::string wav(sizeof(header) + bytes, '\0');
  std::memcpy(wav.data(), &header, sizeof(header));
  char* to = wav.data() + sizeof(header);
  for (const float value : samples) {
    const int16_t sample = Sample(value);
    std::memcpy(to, &sample, sizeof(sample));
    to += sizeof(sample);
  }
  return wav;
}

}  // namespace penstock
