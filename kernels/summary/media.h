// SPDX-License-Identifier: Apache-2.0
//
// Encodes sounds as files that viewers can play.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"

namespace penstock {

// Encodes frames of `channels` samples as WAV of 16 bits. Samples are clipped to [-1, 1].
// InvalidArgument if the sample rate, channels or length do not fit the fields of the WAV header.
StatusOr<std::string> EncodeWav(absl::Span<const float> samples, double sample_rate,
                                int64_t channels);

}  // namespace penstock
