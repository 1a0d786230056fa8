// SPDX-License-Identifier: Apache-2.0
//
// Compares tensors in tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "core/tensor/tensor.h"

namespace penstock {

// Compares type, shape and elements, bit by bit (so 0 differs from -0).
inline testing::AssertionResult Same(const Tensor& actual, const Tensor& expected) {
  const auto same_elements = [&] {
    if (actual.dtype() == DType::kString) {
      return actual.flat<std::string>() == expected.flat<std::string>();
    }
    return std::memcmp(actual.raw_data(), expected.raw_data(), actual.bytes()) == 0;
  };
  if (actual.dtype() == expected.dtype() && actual.shape() == expected.shape() && same_elements()) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "got " << actual.shape().ToString() << actual.ToString() << ", expected "
         << expected.shape().ToString() << expected.ToString();
}

}  // namespace penstock
