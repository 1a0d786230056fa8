// SPDX-License-Identifier: Apache-2.0
//
// A tensor's values as Assert and Print show them: "[1 2][3 4]" for a matrix, "1 2 3..." where
// there is more than asked for. The text is TensorFlow's, because programs search for it.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace penstock {

// At most `elements_max` of them; negative: all.
std::string Summarize(const Tensor& tensor, int64_t elements_max);

}  // namespace penstock
