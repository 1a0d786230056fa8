// SPDX-License-Identifier: Apache-2.0
//
// Lists of dtypes that several ops of this folder allow.
#pragma once

#include "core/tensor/dtype.h"

namespace penstock {

inline DTypes With(DTypes types, const DTypes& more) {
  types.insert(types.end(), more.begin(), more.end());
  return types;
}

// Returns the dtypes that can be keys of a hash table (kernels/array/distinct.h).
inline DTypes Hashable() { return With(kReal, {DType::kBool, DType::kString}); }

}  // namespace penstock
