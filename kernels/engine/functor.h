// SPDX-License-Identifier: Apache-2.0
//
// For functors of elementwise ops: DEVICE_FN, which makes a function callable on CPUs and GPUs, and
// the types that inner loops compute in.
//
//   struct Log1pFn {
//     template <class T> DEVICE_FN T operator()(T x) const {
//       using std::log1p;  // for complex numbers, argument-dependent lookup finds log1p
//       return log1p(x);
//     }
//   };
//
// A functor is a stateless type with one templated operator(). It may have these members:
//   static constexpr double kNanos = 2;       // nanoseconds of a call, without memory traffic
//   template <class T>                        // integer ops: returns an error text if the right
//   static const char* Invalid(const T& y);   // operand is invalid; called before the loops start
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/tensor/dtype.h"
#include "core/tensor/float16.h"
#include "kernels/engine/vector_math.h"

#if defined(PENSTOCK_CUDA_DEVICE)
#include <cuda/std/complex>
#define DEVICE_FN __host__ __device__
#define PENSTOCK_PASS device_pass
#else
#define DEVICE_FN
#define PENSTOCK_PASS host_pass
#endif
// Files that are compiled twice, for CPU and for GPU, define two kernels with the same functors.
// Code that differs between the two compilations is in `inline namespace PENSTOCK_PASS`, so that
// the linker sees different names.

namespace penstock {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

// The complex type that loops compute in. Device code has its own, because std::complex does not
// work there.
#if defined(PENSTOCK_CUDA_DEVICE)
template <class F>
using LoopComplex = cuda::std::complex<F>;
#else
template <class F>
using LoopComplex = std::complex<F>;
#endif

template <class T>
inline constexpr bool kIsComplex = false;
template <class F>
inline constexpr bool kIsComplex<std::complex<F>> = true;
#if defined(PENSTOCK_CUDA_DEVICE)
template <class F>
inline constexpr bool kIsComplex<cuda::std::complex<F>> = true;
#endif

// LoopType<T>: the type in which loops compute elements of type T. 16-bit floats are computed in
// float, so functors never see them; complex numbers in the type that the device supports.
template <class T>
struct LoopTypeOf {
  using type = T;
};
template <>
struct LoopTypeOf<half> {
  using type = float;
};
template <>
struct LoopTypeOf<bfloat16> {
  using type = float;
};
template <class F>
struct LoopTypeOf<std::complex<F>> {
  using type = LoopComplex<F>;
};
template <class T>
using LoopType = typename LoopTypeOf<T>::type;

// ElementType<T, Result>: the inverse of LoopType, the tensor element type for results of loops
// over T.
template <class T, class Result>
struct ElementTypeOf {
  using type = std::conditional_t<std::is_same_v<Result, LoopType<T>>, T, Result>;
};
template <class T, class F>
struct ElementTypeOf<T, LoopComplex<F>> {
  using type = std::complex<F>;
};
template <class T, class Result>
using ElementType = typename ElementTypeOf<T, Result>::type;

template <class T>
struct RealOf {
  using type = T;
};
template <class F>
struct RealOf<LoopComplex<F>> {
  using type = F;
};
template <class T>
using Real = typename RealOf<T>::type;

// Arithmetic on this unsigned type makes signed integers wrap around instead of overflowing, which
// is undefined. It has at least 32 bits, because narrower types are promoted to int, which
// overflows.
template <class T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

template <class Fn>
constexpr double NanosOf() {
  if constexpr (requires { Fn::kNanos; }) {
    return Fn::kNanos;
  } else {
    return 0;
  }
}

}  // namespace penstock
