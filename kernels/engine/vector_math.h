// SPDX-License-Identifier: Apache-2.0
//
// Declares the vector versions of math functions in glibc's libmvec, with an error of at most 4
// ulp, so that the compiler vectorises plain loops that call std::exp and similar functions.
//
// With other libraries or compilers, and with nvcc, the loops call the scalar functions.
#pragma once

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__CUDACC__)
#if __GLIBC_PREREQ(2, 35)

#define PENSTOCK_VECTOR_MATH_1(name)                                       \
  __attribute__((simd("notinbranch"))) double name(double) noexcept(true); \
  __attribute__((simd("notinbranch"))) float name##f(float) noexcept(true);
#define PENSTOCK_VECTOR_MATH_2(name)                                               \
  __attribute__((simd("notinbranch"))) double name(double, double) noexcept(true); \
  __attribute__((simd("notinbranch"))) float name##f(float, float) noexcept(true);

extern "C" {
PENSTOCK_VECTOR_MATH_1(acos)
PENSTOCK_VECTOR_MATH_1(acosh)
PENSTOCK_VECTOR_MATH_1(asin)
PENSTOCK_VECTOR_MATH_1(asinh)
PENSTOCK_VECTOR_MATH_1(atan)
PENSTOCK_VECTOR_MATH_1(atanh)
PENSTOCK_VECTOR_MATH_1(cos)
PENSTOCK_VECTOR_MATH_1(cosh)
PENSTOCK_VECTOR_MATH_1(erf)
PENSTOCK_VECTOR_MATH_1(erfc)
PENSTOCK_VECTOR_MATH_1(exp)
PENSTOCK_VECTOR_MATH_1(expm1)
PENSTOCK_VECTOR_MATH_1(log)
PENSTOCK_VECTOR_MATH_1(log1p)
PENSTOCK_VECTOR_MATH_1(sin)
PENSTOCK_VECTOR_MATH_1(sinh)
PENSTOCK_VECTOR_MATH_1(tan)
PENSTOCK_VECTOR_MATH_1(tanh)
PENSTOCK_VECTOR_MATH_2(atan2)
PENSTOCK_VECTOR_MATH_2(pow)
}

#undef PENSTOCK_VECTOR_MATH_1
#undef PENSTOCK_VECTOR_MATH_2

#endif
#endif
