// SPDX-License-Identifier: Apache-2.0
//
// Tests isotonic regression. The expected numbers are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names

TEST(IsotonicRegression, PoolsAreMeans) {
  const Tensor segments = I({2, 8}, {0, 1, 1, 1, 2, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 1});
  const std::vector<float> x = {3, 1, 2, 5, 1, 0, -4, 7, 1, 1, 1, 2, 3, 3, 9, 2};
  const float a = 2.6666667461395264f, b = 2.857142925262451f;
  ExpectOutputs({"IsotonicRegression", {F({2, 8}, x)}},
                {F({2, 8}, {3, a, a, a, 1, 1, 1, 1, b, b, b, b, b, b, b, 2}), segments});
  const float c = 2.666015625f, d = 2.857421875f;
  ExpectOutputs({"IsotonicRegression", {H({2, 8}, x)}, {{"output_dtype", DType::kHalf}}},
                {H({2, 8}, {3, c, c, c, 1, 1, 1, 1, d, d, d, d, d, d, d, 2}), segments});
  const double e = 8.0 / 3, f = 20.0 / 7;
  ExpectOutputs(
      {"IsotonicRegression", {I({2, 8}, {x.begin(), x.end()})}, {{"output_dtype", DType::kDouble}}},
      {D({2, 8}, {3, e, e, e, 1, 1, 1, 1, f, f, f, f, f, f, f, 2}), segments});
}

TEST(IsotonicRegression, SmallInputs) {
  ExpectOutputs({"IsotonicRegression", {F({}, {3.5})}}, {F({}, {3.5}), I({}, {0})});
  ExpectOutputs({"IsotonicRegression", {F({3, 0}, {})}}, {F({3, 0}, {}), I({3, 0}, {})});
  ExpectOutputs({"IsotonicRegression", {F({0, 3}, {})}}, {F({0, 3}, {}), I({0, 3}, {})});
}

}  // namespace
}  // namespace penstock
