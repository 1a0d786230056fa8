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

TEST(CountRows, DenseResults) {
  const Tensor indices = L({3, 2}, {0, 0, 0, 2, 2, 1}), values = I({3}, {1, 1, 5});
  ExpectOutputs(
      {"SparseBincount", {indices, values, L({2}, {3, 3}), I({}, {4}), F({3}, {1, 2, 3})}},
      {F({3, 4}, {0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})});
  ExpectOutputs(
      {"SparseBincount", {L({3, 1}, {0, 1, 2}), values, L({1}, {3}), I({}, {6}), F({0}, {})}},
      {F({6}, {0, 2, 0, 0, 0, 1})});
  ExpectOutputs({"RaggedBincount",
                 {L({4}, {0, 2, 2, 3}), values, I({}, {4}), F({0}, {})},
                 {{"binary_output", true}}},
                {F({3, 4}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})});
  ExpectOutputs({"RaggedBincount", {L({1}, {0}), I({0}, {}), I({}, {4}), F({0}, {})}},
                {F({0, 4}, {})});
}

TEST(CountRows, SparseResults) {
  const Tensor values = I({2, 3}, {1, 1, 5, 0, 2, 0});
  ExpectOutputs({"DenseCountSparseOutput", {values, F({0}, {})}, {{"binary_output", false}}},
                {L({4, 2}, {0, 1, 0, 5, 1, 0, 1, 2}), F({4}, {2, 1, 2, 1}), L({2}, {2, 6})});
  ExpectOutputs({"DenseCountSparseOutput",
                 {I({3}, {1, 1, 5}), F({3}, {1, 2, 3})},
                 {{"binary_output", false}, {"maxlength", 4}, {"minlength", 9}}},
                {L({1, 1}, {1}), F({1}, {3}), L({1}, {4})});
  ExpectOutputs({"DenseCountSparseOutput", {I({2, 0}, {}), F({0}, {})}, {{"binary_output", false}}},
                {L({0, 2}, {}), F({0}, {}), L({2}, {2, 1})});
  constexpr int64_t kManyRows = int64_t{1} << 60;
  ExpectOutputs(
      {"DenseCountSparseOutput", {I({kManyRows, 0}, {}), F({0}, {})}, {{"binary_output", false}}},
      {L({0, 2}, {}), F({0}, {}), L({2}, {kManyRows, 1})});
  ExpectOutputs({"SparseCountSparseOutput",
                 {L({2, 2}, {2, 0, 0, 2}), I({2}, {7, 8}), L({2}, {3, 3}), F({0}, {})},
                 {{"binary_output", true}, {"minlength", 12}}},
                {L({2, 2}, {0, 8, 2, 7}), F({2}, {1, 1}), L({2}, {3, 12})});
  ExpectOutputs({"RaggedCountSparseOutput",
                 {L({4}, {0, 2, 2, 3}), I({3}, {1, 1, 5}), F({0}, {})},
                 {{"binary_output", false}}},
                {L({2, 2}, {0, 1, 2, 5}), F({2}, {2, 1}), L({2}, {3, 6})});
}

TEST(CountRows, Mistakes) {
  const Tensor values = I({2}, {1, 1}), size = I({}, {4}), none = F({0}, {});
  const auto sparse = [&](const Tensor& indices, const Tensor& shape, const char* words) {
    OpCall{"SparseBincount", {indices, values, shape, size, none}}.ExpectError(words);
  };
  sparse(L({2, 1}, {0, 7}), L({1}, {3}), "indices[1, :] is out of bounds: 7 is not in [0, 3)");
  sparse(L({1, 1}, {0}), L({1}, {3}), "indices (1) and values (2) do not match");
  sparse(L({2, 1}, {0, 1}), L({2}, {3, 3}), "one column for each dimension of [3,3]");
  const auto ragged = [&](const Tensor& splits, const char* words) {
    OpCall{"RaggedBincount", {splits, values, size, none}}.ExpectError(words);
    OpCall{"RaggedCountSparseOutput", {splits, values, none}, {{"binary_output", false}}}
        .ExpectError(words);
  };
  ragged(L({0}, {}), "Splits must be non-empty");
  ragged(L({2}, {1, 2}), "Splits must start with 0, not with 1");
  ragged(L({2}, {0, 1}), "got 1 instead of 2");
  ragged(L({4}, {0, 2, 1, 2}), "Splits must not descend: splits[2] = 1");
  ragged(L({3}, {0, INT64_MAX, 2}), "the number of values, 2: splits[1] = 9223372036854775807");
  const Tensor splits = L({2}, {0, 2});
  OpCall{"RaggedBincount", {splits, I({2}, {1, -1}), size, none}}.ExpectError(
      "Input values must all be non-negative: value 1 is -1");
  OpCall{"RaggedBincount", {splits, values, I({}, {-4}), none}}.ExpectError(
      "size (-4) must be non-negative");
  OpCall{"RaggedBincount", {splits, values, size, F({1}, {1})}}.ExpectError(
      "Weight shape: [1]; values shape: [2]");
  OpCall{"DenseCountSparseOutput", {I({}, {1}), none}, {{"binary_output", false}}}.ExpectError(
      "Input must be a 1 or 2-dimensional tensor. Got: []");
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
