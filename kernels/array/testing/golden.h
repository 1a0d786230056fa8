// SPDX-License-Identifier: Apache-2.0
//
// For tests whose expected results come from TensorFlow: short functions that make tensors of each
// type, and a function that compares an op's outputs with expected tensors.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "kernels/array/testing/op_check.h"

namespace penstock {

// Expects every output to be as expected. Floats and complex numbers may differ by `tolerance`,
// relative to the expected number if that is greater than 1. With tolerance 0, compares bit by bit,
// except that any NaN equals any other NaN.
void ExpectOutputs(const OpCall& call, const std::vector<Tensor>& expected, double tolerance = 0);
testing::AssertionResult NearTensor(const Tensor& actual, const Tensor& expected, double tolerance);

namespace golden {

#define PENSTOCK_GOLDEN(Name, T)                                         \
  inline Tensor Name(const Shape& shape, const std::vector<T>& values) { \
    return Tensor::Of<T>(shape, values);                                 \
  }
PENSTOCK_GOLDEN(F, float)
PENSTOCK_GOLDEN(D, double)
PENSTOCK_GOLDEN(I, int32_t)
PENSTOCK_GOLDEN(L, int64_t)
PENSTOCK_GOLDEN(B, bool)
PENSTOCK_GOLDEN(S, std::string)
PENSTOCK_GOLDEN(C, std::complex<float>)
PENSTOCK_GOLDEN(Z, std::complex<double>)
PENSTOCK_GOLDEN(I8, int8_t)
PENSTOCK_GOLDEN(I16, int16_t)
PENSTOCK_GOLDEN(U8, uint8_t)
PENSTOCK_GOLDEN(U16, uint16_t)
PENSTOCK_GOLDEN(U32, uint32_t)
PENSTOCK_GOLDEN(U64, uint64_t)
#undef PENSTOCK_GOLDEN
inline Tensor H(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<half>(shape, {values.begin(), values.end()});
}
inline Tensor BF(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<bfloat16>(shape, {values.begin(), values.end()});
}

}  // namespace golden
}  // namespace penstock
