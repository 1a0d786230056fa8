// SPDX-License-Identifier: Apache-2.0
//
// Tests counting ops, cross products and SparseMatMul. The expected numbers are those of TensorFlow
// 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(Histogram, Bincount) {
  ExpectOutputs({"Bincount", {I({4}, {1, 1, 3, 9}), I({}, {5}), F({0}, {})}},
                {F({5}, {0, 2, 0, 1, 0})});
  ExpectOutputs({"Bincount", {I({2, 2}, {1, 1, 3, 9}), I({}, {5}), F({4}, {1, 2, 3.5f, 4})}},
                {F({5}, {0, 3, 0, 3.5f, 0})});
  ExpectOutputs({"Bincount", {I({4}, {1, 1, 3, 9}), I({}, {0}), L({4}, {1, 2, 3, 3})}},
                {L({0}, {})});
  OpCall{"Bincount", {I({2}, {1, -1}), I({}, {5}), F({0}, {})}}.ExpectError("must be non-negative");
  OpCall{"Bincount", {I({1}, {1}), I({}, {-5}), F({0}, {})}}.ExpectError(
      "size (-5) must be non-negative");
  OpCall{"Bincount", {I({2}, {1, 1}), I({}, {5}), F({1}, {1})}}.ExpectError(
      "must have the same size");
}

TEST(Histogram, DenseBincount) {
  ExpectOutputs({"DenseBincount", {I({4}, {1, 1, 3, 9}), I({}, {5}), L({4}, {1, 2, 3, 3})}},
                {L({5}, {0, 3, 0, 3, 0})});
  ExpectOutputs(
      {"DenseBincount", {L({4}, {1, 1, 3, 9}), L({}, {5}), I({0}, {})}, {{"binary_output", true}}},
      {I({5}, {0, 1, 0, 1, 0})});
  ExpectOutputs({"DenseBincount", {I({2, 2}, {1, 1, 3, 9}), I({}, {5}), D({0}, {})}},
                {D({2, 5}, {0, 2, 0, 0, 0, 0, 0, 0, 1, 0})});
  ExpectOutputs({"DenseBincount", {I({2, 2}, {1, 1, 3, 9}), I({}, {5}), F({2, 2}, {1, 2, 3, 4})}},
                {F({2, 5}, {0, 3, 0, 0, 0, 0, 0, 0, 3, 0})});
  ExpectOutputs({"DenseBincount", {I({}, {3}), I({}, {5}), F({0}, {})}}, {F({5}, {0, 0, 0, 1, 0})});
  OpCall{"DenseBincount", {I({1, 1, 1}, {1}), I({}, {5}), F({0}, {})}}.ExpectError(
      "rank 2 at most");
  OpCall{"DenseBincount", {I({2}, {1, 2}), I({}, {5}), F({1}, {3})}}.ExpectError(
      "must have the same size");
}

TEST(Histogram, Bucketize) {
  ExpectOutputs({"Bucketize",
                 {F({1, 5}, {-1, 0, 1.5f, NAN, 1e+02f})},
                 {{"boundaries", std::vector<float>{0.0f, 1.5f, 3.0f}}}},
                {I({1, 5}, {0, 1, 2, 3, 3})});
  ExpectOutputs({"Bucketize",
                 {I({1, 5}, {-1, 0, 1, 5, 100})},
                 {{"boundaries", std::vector<float>{0.0f, 1.5f, 3.0f}}}},
                {I({1, 5}, {0, 1, 1, 3, 3})});
  ExpectOutputs({"Bucketize", {L({2}, {-1, 0})}, {{"boundaries", std::vector<float>{}}}},
                {I({2}, {0, 0})});
  OpCall{"Bucketize", {I({1}, {1})}, {{"boundaries", std::vector<float>{1.5f, 0.0f}}}}.ExpectError(
      "Expected sorted boundaries");
}

TEST(Histogram, FixedWidth) {
  ExpectOutputs({"HistogramFixedWidth",
                 {F({7}, {-1, 0, 1.5f, 2, 5, 15, INFINITY}), F({2}, {0, 5}), I({}, {5})}},
                {I({5}, {2, 1, 1, 0, 3})});
  ExpectOutputs({"HistogramFixedWidth",
                 {I({6}, {-1, 0, 1, 2, 5, 15}), I({2}, {0, 5}), I({}, {3})},
                 {{"dtype", DType::kInt64}}},
                {L({3}, {3, 1, 2})});
  ExpectOutputs({"HistogramFixedWidth", {D({0}, {}), D({2}, {0, 5}), I({}, {2})}},
                {I({2}, {0, 0})});
  ExpectOutputs({"HistogramFixedWidth", {F({2}, {1, INFINITY}), F({2}, {0, INFINITY}), I({}, {2})}},
                {I({2}, {2, 0})});
  OpCall{"HistogramFixedWidth", {F({1}, {NAN}), F({2}, {0, 5}), I({}, {5})}}.ExpectError(
      "must not contain NaN");
  OpCall{"HistogramFixedWidth", {I({1}, {1}), I({2}, {5, 5}), I({}, {3})}}.ExpectError(
      "value_range[0] < value_range[1]");
  OpCall{"HistogramFixedWidth", {I({1}, {1}), I({2}, {0, 5}), I({}, {0})}}.ExpectError(
      "nbins should be a positive number");
  OpCall{"HistogramFixedWidth", {I({1}, {1}), I({3}, {0, 5, 6}), I({}, {2})}}.ExpectError(
      "vector of 2 elements");
}

TEST(Cross, OfThree) {
  ExpectOutputs({"Cross", {U8({1, 3}, {1, 2, 3}), U8({1, 3}, {4, 5, 7})}},
                {U8({1, 3}, {255, 5, 253})});
  ExpectOutputs({"Cross", {F({2, 3}, {1, 2, 3, 0, 1, 0}), F({2, 3}, {4, 5, 7, 0, 0, 1})}},
                {F({2, 3}, {-1, 5, -3, 1, 0, 0})});
  OpCall{"Cross", {F({2}, {1, 2}), F({2}, {4, 5})}}.ExpectError("3-element vectors");
  OpCall{"Cross", {F({3}, {1, 2, 3}), F({1, 3}, {4, 5, 6})}}.ExpectError("must be of same shape");
}

TEST(SparseMatMul, MixesTypes) {
  ExpectOutputs({"SparseMatMul", {F({2, 3}, {1, 0, 2, 0, 3, 0}), BF({3, 2}, {1, 2, 3, 4, 5, 6})}},
                {F({2, 2}, {11, 14, 9, 12})}, 1e-06);
  ExpectOutputs({"SparseMatMul",
                 {BF({2, 3}, {1, 0, 2, 0, 3, 0}), F({3, 2}, {1, 2, 3, 4, 5, 6})},
                 {{"transpose_a", true}, {"transpose_b", true}}},
                {F({3, 3}, {1, 3, 5, 6, 12, 18, 2, 6, 1e+01f})}, 1e-06);
  OpCall{"SparseMatMul", {F({2, 3}, {1, 0, 2, 0, 3, 0}), F({2, 2}, {1, 2, 3, 4})}}.ExpectError(
      "Matrix size incompatible");
}

}  // namespace
}  // namespace penstock
