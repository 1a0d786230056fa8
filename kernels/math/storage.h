// SPDX-License-Identifier: Apache-2.0
//
// For ops that only move elements: maps each dtype to a type of the same size, so that one loop
// serves float, int32, qint32 and others.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"

namespace penstock {

struct alignas(8) Bytes16 {
  uint64_t words[2];
};

// Calls fn(T()), where T is the type that stands for `dtype` when elements are moved. On devices T
// is always a plain type.
template <class Fn>
auto WithStorageType(DType dtype, Fn fn) {
#if !defined(PENSTOCK_CUDA_DEVICE)
  if (dtype == DType::kString) return fn(std::string());
  if (dtype == DType::kResource) return fn(ResourceHandle());
  if (dtype == DType::kVariant) return fn(Variant());
#endif
  switch (SizeOf(dtype)) {
    case 1:
      return fn(uint8_t());
    case 2:
      return fn(uint16_t());
    case 4:
      return fn(uint32_t());
    case 8:
      return fn(uint64_t());
    default:
      return fn(Bytes16());
  }
}

}  // namespace penstock
