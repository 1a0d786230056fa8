// SPDX-License-Identifier: Apache-2.0
//
// Sounds as the files that viewers play.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"

namespace penstock {

// Frames of `channels` samples in [-1, 1], louder ones clipped, as WAV of 16 bits.
// InvalidArgument where the header cannot hold the numbers.
StatusOr<std::string> EncodeWav(absl::Span<const float> samples, float sample_rate,
                                int64_t channels);

}  // namespace penstock
