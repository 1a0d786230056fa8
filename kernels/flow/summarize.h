// SPDX-License-Identifier: Apache-2.0
//
// Summarize: the text of a tensor's values as Assert and Print show them: "[1 2][3 4]" for a
// matrix, "1 2 3..." if there are more values than requested. The format is TensorFlow's, because
// programs search for it.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace penstock {

// Returns the text of at most `elements_max` values; of all values if it is negative.
std::string Summarize(const Tensor& tensor, int64_t elements_max);

}  // namespace penstock
