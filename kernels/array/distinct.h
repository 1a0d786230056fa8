// SPDX-License-Identifier: Apache-2.0
//
// KeysOf: elements as keys of a hash table, so that Unique and ListDiff are compiled once for all
// numbers and once for strings.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace penstock {

// The elements of a vector, equal keys for equal elements: -0.0 as 0.0. A NaN equals nothing; where
// one may occur, `nan` says which elements are one.
struct Keys {
  std::vector<uint64_t> bits;
  std::vector<bool> nan;  // empty: none
  bool is_nan(size_t i) const { return !nan.empty() && nan[i]; }
};

// REQUIRES a real number type or bool.
Keys KeysOf(const Tensor& vector);

}  // namespace penstock
