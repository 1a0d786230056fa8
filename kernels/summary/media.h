// SPDX-License-Identifier: Apache-2.0
//
// Pictures and sounds as the files that viewers show.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"

namespace penstock {

// Rows of `width` pixels of 1 (grey), 3 (RGB) or 4 (RGBA) bytes, as PNG. Internal where the library
// fails.
StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int height, int width,
                                int channels);

// Frames of `channels` samples in [-1, 1], louder ones clipped, as WAV of 16 bits.
// InvalidArgument where the header cannot hold the numbers.
StatusOr<std::string> EncodeWav(absl::Span<const float> samples, float sample_rate,
                                int64_t channels);

}  // namespace penstock
