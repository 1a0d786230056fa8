// SPDX-License-Identifier: Apache-2.0
//
// Compares the results of two devices: exactly, except for floating-point numbers, whose last bits
// depend on the order of additions and on the device's math functions.
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace penstock {

// Returns "" if the tensors agree; otherwise says what differs: the type, the shape, or the first
// element outside the tolerance.
std::string Disagreement(const Tensor& expected, const Tensor& found);

}  // namespace penstock
