// SPDX-License-Identifier: Apache-2.0
//
// KeysOf: turns elements into keys of a hash table, so that Unique and ListDiff are compiled only
// twice: once for all numbers, once for strings.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace penstock {

// One key per element of a vector; equal elements have equal keys (-0.0 and 0.0 are equal). A NaN
// equals no element, so `nan` marks the elements that are NaN.
struct ElementKeys {
  std::vector<uint64_t> bits;
  std::vector<bool> nan;  // empty if no element is NaN
  bool is_nan(size_t i) const { return !nan.empty() && nan[i]; }
};

// Returns the keys of a vector. REQUIRES: a real number type or bool.
ElementKeys KeysOf(const Tensor& vector);

}  // namespace penstock
