// SPDX-License-Identifier: Apache-2.0
//
// Whether two devices computed the same: exactly, but for floating-point numbers, whose last bits
// depend on the order of additions and on whose exp it is.
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace penstock {

// "" where they agree; else what differs: type, shape, or the first element that is too far off.
std::string Disagreement(const Tensor& expected, const Tensor& found);

}  // namespace penstock
