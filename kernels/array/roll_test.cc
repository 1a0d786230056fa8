// SPDX-License-Identifier: Apache-2.0
//
// Tests Roll. The expected numbers are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(Roll, RoundTheEnd) {
  ExpectOutputs({"Roll", {I({2, 3}, {0, 1, 2, 3, 4, 5}), I({2}, {1, -1}), I({2}, {0, 1})}},
                {I({2, 3}, {4, 5, 3, 1, 2, 0})});
  ExpectOutputs({"Roll", {I({2, 3}, {0, 1, 2, 3, 4, 5}), I({2}, {1, 3}), L({2}, {1, 1})}},
                {I({2, 3}, {2, 0, 1, 5, 3, 4})});
  ExpectOutputs({"Roll", {I({2, 3}, {0, 1, 2, 3, 4, 5}), L({}, {-4}), I({}, {-1})}},
                {I({2, 3}, {1, 2, 0, 4, 5, 3})});
  ExpectOutputs({"Roll", {S({3}, {"a", "b", "c"}), I({}, {1}), I({}, {0})}},
                {S({3}, {"c", "a", "b"})});
  ExpectOutputs({"Roll", {F({0, 3}, {}), I({}, {1}), I({}, {0})}}, {F({0, 3}, {})});
  ExpectOutputs(
      {"Roll", {F({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), I({3}, {1, 1, 1}), I({3}, {0, 1, 2})}},
      {F({2, 2, 2}, {7, 6, 5, 4, 3, 2, 1, 0})});
}

TEST(Roll, Mistakes) {
  OpCall{"Roll", {I({2, 3}, {0, 1, 2, 3, 4, 5}), I({1}, {1}), I({}, {-1})}}.ExpectError(
      "must have the same size");
  OpCall{"Roll", {I({2, 3}, {0, 1, 2, 3, 4, 5}), I({}, {1}), I({}, {2})}}.ExpectError("axis");
  OpCall{"Roll", {F({}, {1}), I({}, {1}), I({}, {0})}}.ExpectError("1-D or higher");
}

}  // namespace
}  // namespace penstock
