// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/testing/golden.h"

#include <cmath>

namespace penstock {
namespace {

bool Near(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (actual == expected || std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

template <class T>
bool AllNear(const Tensor& actual, const Tensor& expected, double tolerance) {
  for (int64_t i = 0; i < actual.num_elements(); ++i) {
    if (!Near(static_cast<double>(actual.data<T>()[i]), static_cast<double>(expected.data<T>()[i]),
              tolerance)) {
      return false;
    }
  }
  return true;
}

template <class F>
bool AllNearComplex(const Tensor& actual, const Tensor& expected, double tolerance) {
  for (int64_t i = 0; i < actual.num_elements(); ++i) {
    const auto a = actual.data<std::complex<F>>()[i], e = expected.data<std::complex<F>>()[i];
    if (!Near(a.real(), e.real(), tolerance) || !Near(a.imag(), e.imag(), tolerance)) return false;
  }
  return true;
}

}  // namespace

testing::AssertionResult NearTensor(const Tensor& actual, const Tensor& expected,
                                    double tolerance) {
  if (actual.dtype() != expected.dtype() || !(actual.shape() == expected.shape())) {
    return SameTensor(actual, expected);
  }
  const bool near = [&] {
    switch (actual.dtype()) {
      case DType::kFloat:
        return AllNear<float>(actual, expected, tolerance);
      case DType::kDouble:
        return AllNear<double>(actual, expected, tolerance);
      case DType::kHalf:
        return AllNear<half>(actual, expected, tolerance);
      case DType::kBfloat16:
        return AllNear<bfloat16>(actual, expected, tolerance);
      case DType::kComplex64:
        return AllNearComplex<float>(actual, expected, tolerance);
      case DType::kComplex128:
        return AllNearComplex<double>(actual, expected, tolerance);
      default:
        return bool(SameTensor(actual, expected));
    }
  }();
  if (near) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "got " << actual.shape().ToString() << actual.ToString(50)
                                     << ", expected " << expected.ToString(50);
}

void ExpectOutputs(const OpCall& call, const std::vector<Tensor>& expected, double tolerance) {
  const std::vector<Tensor> outputs = call.Run();
  ASSERT_EQ(outputs.size(), expected.size()) << call.op;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(NearTensor(outputs[i], expected[i], tolerance)) << call.op << " output " << i;
  }
}

}  // namespace penstock
