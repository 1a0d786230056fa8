// SPDX-License-Identifier: Apache-2.0
//
// AtomicAdd for every type of number, for sums by scattered additions on the device. Integers wrap
// around. The order of the additions, and so the rounding, differs from run to run.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/engine/cuda_launch.cuh"

namespace penstock {

// For numbers narrower than 32 bits: exchanges the aligned 32-bit word that contains the number.
template <class T>
__device__ void AtomicAddNarrow(T* to, T x) {
  const auto address = reinterpret_cast<uintptr_t>(to);
  auto* word = reinterpret_cast<unsigned*>(address & ~uintptr_t{3});
  const unsigned shift = static_cast<unsigned>(address & 3) * 8;
  const unsigned mask = ((1u << (8 * sizeof(T))) - 1) << shift;
  unsigned seen = *word, assumed;
  do {
    assumed = seen;
    const T sum = static_cast<T>(static_cast<T>(assumed >> shift) + x);
    const unsigned bits = static_cast<unsigned>(std::make_unsigned_t<T>(sum)) << shift;
    seen = atomicCAS(word, assumed, (assumed & ~mask) | bits);
  } while (seen != assumed);
}

template <class T>
__device__ void AtomicAdd(T* to, T x) {
  if constexpr (kIsComplex<T>) {
    // The real and the imaginary part are added separately.
    auto* parts = reinterpret_cast<Real<T>*>(to);
    atomicAdd(parts, x.real());
    atomicAdd(parts + 1, x.imag());
  } else if constexpr (std::is_same_v<T, half>) {
    atomicAdd(reinterpret_cast<__half*>(to), __ushort_as_half(x.bits));
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    atomicAdd(reinterpret_cast<__nv_bfloat16*>(to), __ushort_as_bfloat16(x.bits));
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) {
    atomicAdd(reinterpret_cast<unsigned*>(to), static_cast<unsigned>(x));
  } else if constexpr (std::is_integral_v<T>) {
    AtomicAddNarrow(to, x);
  } else {
    atomicAdd(to, x);
  }
}

}  // namespace penstock
