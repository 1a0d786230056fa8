// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/agreement.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>

namespace penstock {
namespace {

// Returns the tolerance relative to 1 + |expected|: some hundred units in the last place, two for
// the narrow types.
double Tolerance(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
    case DType::kComplex128:
      return 1e-11;
    case DType::kHalf:
      return 2e-3;
    case DType::kBfloat16:
      return 1.6e-2;
    default:
      return 2e-5;
  }
}

bool Near(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * (1 + std::abs(a));
}
bool Near(std::complex<double> a, std::complex<double> b, double tolerance) {
  return Near(a.real(), b.real(), tolerance) && Near(a.imag(), b.imag(), tolerance);
}

template <class T>
double Wide(T value) {
  return static_cast<double>(value);
}
template <class F>
std::complex<double> Wide(std::complex<F> value) {
  return std::complex<double>(value);
}

template <class T>
std::string Show(const T& value) {
  return Tensor::Scalar<T>(value).ToString();
}

template <class T, class Equal>
std::string FirstDifference(const Tensor& expected, const Tensor& found, const Equal& equal) {
  const auto a = expected.flat<T>(), b = found.flat<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) {
      return StrCat("element ", i, " is ", Show(b[i]), ", expected ", Show(a[i]));
    }
  }
  return "";
}

template <class T>
std::string Numbers(const Tensor& expected, const Tensor& found) {
  const double tolerance = Tolerance(expected.dtype());
  return FirstDifference<T>(
      expected, found, [&](const T& a, const T& b) { return Near(Wide(a), Wide(b), tolerance); });
}

}  // namespace

std::string Disagreement(const Tensor& expected, const Tensor& found) {
  if (expected.dtype() != found.dtype() || !(expected.shape() == found.shape())) {
    return StrCat("is a ", Name(found.dtype()), found.shape().ToString(), ", expected a ",
                  Name(expected.dtype()), expected.shape().ToString());
  }
  switch (expected.dtype()) {
    case DType::kFloat:
      return Numbers<float>(expected, found);
    case DType::kDouble:
      return Numbers<double>(expected, found);
    case DType::kHalf:
      return Numbers<half>(expected, found);
    case DType::kBfloat16:
      return Numbers<bfloat16>(expected, found);
    case DType::kComplex64:
      return Numbers<std::complex<float>>(expected, found);
    case DType::kComplex128:
      return Numbers<std::complex<double>>(expected, found);
    case DType::kString:
      return FirstDifference<std::string>(expected, found, std::equal_to<>());
    case DType::kResource:
      return "";  // handles; the caller compares the values of their variables
    default:
      if (std::memcmp(expected.raw_data(), found.raw_data(), expected.bytes()) == 0) return "";
      return StrCat("is ", found.ToString(), ", expected ", expected.ToString());
  }
}

}  // namespace penstock
