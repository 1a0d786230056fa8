// SPDX-License-Identifier: Apache-2.0
//
// Adds images and sounds to summaries, for the ops that return summaries and for the ops that write
// them to files.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "kernels/summary/summary.h"

namespace penstock {

// Adds the first `most` of `images` [batch, height, width, channels], of uint8 or a floating type,
// in PNG format. `bad_color` is the color of pixels that are not finite. InvalidArgument if the
// images or the color do not fit.
Status AddImages(const std::string& tag, const Tensor& images, int64_t most,
                 const Tensor& bad_color, SummaryBuilder* summary);
// Adds the first `most` of `sounds` [batch, frames] or [batch, frames, channels]; `rate` is in Hz.
// InvalidArgument if the sounds have another rank, or if the rate is not positive.
Status AddSounds(const std::string& tag, const Tensor& sounds, float rate, int64_t most,
                 SummaryBuilder* summary);

}  // namespace penstock
