// SPDX-License-Identifier: Apache-2.0
//
// Tests ops on distinct slices, positions in sorted rows, and coordinates. The expected numbers are
// those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(Unique, V2) {
  ExpectOutputs({"UniqueV2", {I({6}, {1, 3, 1, 2, 3, 3}), L({0}, {})}},
                {I({3}, {1, 3, 2}), I({6}, {0, 1, 0, 2, 1, 1})});
  ExpectOutputs({"UniqueV2", {I({4, 2}, {1, 2, 3, 4, 1, 2, 3, 5}), L({1}, {0})}},
                {I({3, 2}, {1, 2, 3, 4, 3, 5}), I({4}, {0, 1, 0, 2})});
  ExpectOutputs(
      {"UniqueV2", {F({2, 3}, {1, 2, 1, 3, 4, 3}), I({1}, {1})}, {{"out_idx", DType::kInt64}}},
      {F({2, 2}, {1, 2, 3, 4}), L({3}, {0, 1, 0})});
  ExpectOutputs(
      {"UniqueWithCountsV2",
       {F({4, 2, 2}, {0, 1, 2, 3, -0, 1, 2, 3, NAN, 1, 2, 3, NAN, 1, 2, 3}), L({1}, {0})}},
      {F({3, 2, 2}, {0, 1, 2, 3, NAN, 1, 2, 3, NAN, 1, 2, 3}), I({4}, {0, 0, 1, 2}),
       I({3}, {2, 1, 1})});
  ExpectOutputs({"UniqueV2", {S({3, 2}, {"a", "b", "a", "b", "ab", ""}), L({1}, {-2})}},
                {S({2, 2}, {"a", "b", "ab", ""}), I({3}, {0, 0, 1})});
  ExpectOutputs({"UniqueV2", {F({0, 2}, {}), L({1}, {0})}}, {F({0, 2}, {}), I({0}, {})});
  ExpectOutputs({"UniqueV2", {F({3, 0}, {}), L({1}, {0})}}, {F({1, 0}, {}), I({3}, {0, 0, 0})});
}

TEST(UnravelIndex, Coordinates) {
  ExpectOutputs({"UnravelIndex", {I({3}, {22, 41, 37}), I({2}, {7, 6})}},
                {I({2, 3}, {3, 6, 6, 4, 5, 1})});
  ExpectOutputs({"UnravelIndex", {L({}, {1621}), L({4}, {6, 7, 8, 9})}}, {L({4}, {3, 1, 4, 1})});
}

TEST(Bounds, LowerAndUpper) {
  ExpectOutputs(
      {"LowerBound",
       {F({2, 4}, {1, 2, 2, 5, -1, 0, 0, 7}), F({2, 4}, {0, 2, 5, 6, 0, -1, 8, INFINITY})}},
      {I({2, 4}, {0, 1, 3, 4, 1, 0, 4, 4})});
  ExpectOutputs(
      {"UpperBound",
       {F({2, 4}, {1, 2, 2, 5, -1, 0, 0, 7}), F({2, 4}, {0, 2, 5, 6, 0, -1, 8, INFINITY})},
       {{"out_type", DType::kInt64}}},
      {L({2, 4}, {0, 3, 4, 4, 3, 1, 4, 4})});
}

TEST(NthElement, OfRows) {
  ExpectOutputs(
      {"NthElement", {F({2, 4}, {3, 1, 2, 1, -5, 7, 0, 7}), I({}, {0})}, {{"reverse", false}}},
      {F({2}, {1, -5})});
  ExpectOutputs(
      {"NthElement", {F({2, 4}, {3, 1, 2, 1, -5, 7, 0, 7}), I({}, {0})}, {{"reverse", true}}},
      {F({2}, {3, 7})});
  ExpectOutputs(
      {"NthElement", {F({2, 4}, {3, 1, 2, 1, -5, 7, 0, 7}), I({}, {2})}, {{"reverse", false}}},
      {F({2}, {2, 7})});
  ExpectOutputs(
      {"NthElement", {F({2, 4}, {3, 1, 2, 1, -5, 7, 0, 7}), I({}, {2})}, {{"reverse", true}}},
      {F({2}, {1, 0})});
  ExpectOutputs(
      {"NthElement", {F({2, 4}, {3, 1, 2, 1, -5, 7, 0, 7}), I({}, {3})}, {{"reverse", false}}},
      {F({2}, {3, 7})});
  ExpectOutputs(
      {"NthElement", {F({2, 4}, {3, 1, 2, 1, -5, 7, 0, 7}), I({}, {3})}, {{"reverse", true}}},
      {F({2}, {1, -5})});
  ExpectOutputs({"NthElement", {I({3}, {5, 4, 9}), I({}, {1})}}, {I({}, {5})});
}

TEST(Search, BadArgumentsAreNamed) {
  OpCall{"UnravelIndex", {I({1}, {6}), I({2}, {2, 3})}}.ExpectError("6 is not in [0, 6)");
  OpCall{"UnravelIndex", {I({1}, {0}), I({2}, {2, 0})}}.ExpectError("0 is not in [0, 0)");
  OpCall{"UnravelIndex", {I({1, 1}, {0}), I({1}, {2})}}.ExpectError("scalar or vector");
  OpCall{"LowerBound", {F({1, 2}, {0, 1}), F({2, 1}, {0, 1})}}.ExpectError("as many rows");
  OpCall{"NthElement", {F({3}, {0, 1, 2}), I({}, {3})}}.ExpectError("n must be in [0, 3)");
  OpCall{"NthElement", {F({}, {0}), I({}, {0})}}.ExpectError(">= 1-D");
  OpCall{"UniqueV2", {F({3}, {0, 1, 2}), I({1}, {1})}}.ExpectError("axis");
  OpCall{"UniqueV2", {F({1, 1}, {0}), I({0}, {})}}.ExpectError("1D vector");
  OpCall{"EnsureShape", {F({2}, {0, 1})}, {{"shape", PartialShape({3})}}}.ExpectError(
      "is not compatible with expected shape [3]");
}

}  // namespace
}  // namespace penstock
