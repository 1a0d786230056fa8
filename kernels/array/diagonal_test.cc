// SPDX-License-Identifier: Apache-2.0
//
// Tests MatrixDiag, MatrixDiagPart and MatrixSetDiag with bands of diagonals. The expected numbers
// are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

const Tensor kMatrix = F({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
const Tensor kNine = F({}, {9});
const Tensor kAsNeeded = I({}, {-1});  // as many rows or columns as needed

TEST(Diagonals, ShortOnesLieAtEitherEnd) {
  const struct {
    const char* align;
    Tensor packed;
  } cases[] = {
      {"LEFT_RIGHT", F({5, 3}, {4, 9, 9, 3, 8, 9, 2, 7, 12, 1, 6, 11, 9, 5, 10})},
      {"RIGHT_LEFT", F({5, 3}, {9, 9, 4, 9, 3, 8, 2, 7, 12, 1, 6, 11, 5, 10, 9})},
      {"LEFT_LEFT", F({5, 3}, {4, 9, 9, 3, 8, 9, 2, 7, 12, 1, 6, 11, 5, 10, 9})},
      {"RIGHT_RIGHT", F({5, 3}, {9, 9, 4, 9, 3, 8, 2, 7, 12, 1, 6, 11, 9, 5, 10})},
  };
  const Tensor k = I({2}, {-1, 3}), zeros = F({3, 4}, std::vector<float>(12));
  for (const auto& c : cases) {
    const Attrs align = {{"align", c.align}};
    ExpectOutputs({"MatrixDiagPartV3", {kMatrix, k, kNine}, align}, {c.packed});
    ExpectOutputs({"MatrixSetDiagV3", {zeros, c.packed, k}, align},
                  {F({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 0, 10, 11, 12})});
    ExpectOutputs({"MatrixDiagV3", {c.packed, k, I({}, {3}), I({}, {4}), F({}, {-2})}, align},
                  {F({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, -2, 10, 11, 12})});
  }
  ExpectOutputs({"MatrixDiagPartV2", {kMatrix, k, kNine}}, {cases[2].packed});
  ExpectOutputs({"MatrixDiagPartV3", {kMatrix, k, kNine}}, {cases[1].packed});
}

TEST(Diagonals, MakeMatricesOfTheSizesThatFit) {
  const Tensor one = F({4}, {1, 2, 3, 4}), two = F({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const struct {
    Tensor diagonal, k;
    int32_t rows, cols;
    Tensor matrix;
  } cases[] = {
      {two, I({2}, {0, 1}), -1, -1, F({4, 4}, {5, 2, 9, 9, 9, 6, 3, 9, 9, 9, 7, 4, 9, 9, 9, 8})},
      {two, I({2}, {-2, -1}), -1, -1,
       F({5, 5}, {9, 9, 9, 9, 9, 1, 9, 9, 9, 9, 5, 2, 9, 9, 9, 9, 6, 3, 9, 9, 9, 9, 7, 4, 9})},
      {two, I({2}, {1, 2}), 4, -1,
       F({4, 5}, {9, 5, 2, 9, 9, 9, 9, 6, 3, 9, 9, 9, 9, 7, 4, 9, 9, 9, 9, 8})},
      {two, I({2}, {-1, 0}), 4, 7, F({4, 7}, {1, 9, 9, 9, 9, 9, 9, 5, 2, 9, 9, 9, 9, 9,
                                              9, 6, 3, 9, 9, 9, 9, 9, 9, 7, 4, 9, 9, 9})},
      {one, I({1}, {0}), -1, -1, F({4, 4}, {1, 9, 9, 9, 9, 2, 9, 9, 9, 9, 3, 9, 9, 9, 9, 4})},
      {F({2, 0}, {}), I({}, {1}), -1, -1, F({2, 1, 1}, {9, 9})},
  };
  for (const auto& c : cases) {
    ExpectOutputs({"MatrixDiagV3", {c.diagonal, c.k, I({}, {c.rows}), I({}, {c.cols}), kNine}},
                  {c.matrix});
  }
  const Tensor minus = F({3, 3}, {-1, -2, -3, -4, -5, -6, -7, -8, -9});
  for (const char* op : {"MatrixSetDiagV2", "MatrixSetDiagV3"}) {
    ExpectOutputs({op, {kMatrix, minus, I({2}, {-1, 1})}},
                  {F({3, 4}, {-4, -1, 3, 4, -7, -5, -2, 8, 9, -8, -6, -3})});
  }
}

TEST(Diagonals, AreCheckedAgainstTheMatrices) {
  const auto part = [](Tensor k, const char* words) {
    OpCall{"MatrixDiagPartV3", {kMatrix, std::move(k), kNine}}.ExpectError(words);
  };
  part(I({}, {4}), "have no diagonal 4");
  part(I({2}, {-3, 0}), "have no diagonal -3");
  part(I({2}, {1, 0}), "k must not fall: lower diagonal 1 > upper diagonal 0");
  part(I({3}, {0, 0, 0}), "k must be a scalar or a vector of one or two elements, has shape [3]");
  OpCall{"MatrixDiagPartV3", {kMatrix, I({}, {0}), F({2}, {0, 0})}}.ExpectError(
      "padding_value must be a scalar, has shape [2]");
  const auto make = [](Tensor k, int32_t rows, int32_t cols, const char* words) {
    OpCall{"MatrixDiagV3", {kMatrix, std::move(k), I({}, {rows}), I({}, {cols}), kNine}}
        .ExpectError(words);
  };
  make(I({}, {0}), 3, -1, "num_rows 3 and num_cols 4 do not fit diagonals of 4 elements");
  make(I({}, {0}), 5, 5, "num_rows 5 and num_cols 5 do not fit");
  make(I({2}, {-2, 1}), -1, -1, "a row for each of the 4 diagonals of k, has shape [3,4]");
  OpCall{"MatrixDiagV3", {F({2}, {1, 2}), I({2}, {0, 1}), kAsNeeded, kAsNeeded, kNine}}.ExpectError(
      "diagonal must be at least 2-dim");
  OpCall{"MatrixSetDiagV3", {kMatrix, F({1, 3}, {1, 2, 3}), I({2}, {0, 0})}}.ExpectError(
      "must have diagonal.shape == [3] for input.shape [3,4], got [1,3]");
}

}  // namespace
}  // namespace penstock
