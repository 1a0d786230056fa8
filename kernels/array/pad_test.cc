// SPDX-License-Identifier: Apache-2.0
//
// Tests Pad, PadV2, MirrorPad, MirrorPadGrad, Tile, TileGrad.
#include <gtest/gtest.h>

#include <complex>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

struct Case {
  Shape shape;
  std::vector<int32_t> pads;  // pairs
};

Shape PaddedShape(const Case& c) {
  Dims dims;
  for (int i = 0; i < c.shape.rank(); ++i) {
    dims.push_back(c.pads[2 * i] + c.shape.dim(i) + c.pads[2 * i + 1]);
  }
  return Shape(dims);
}

const Case kCases[] = {
    {{3}, {2, 1}},
    {{3, 4}, {1, 2, 0, 3}},
    {{3, 4}, {0, 0, 0, 0}},
    {{2, 3, 4}, {1, 0, 0, 2, 1, 1}},
    {{0, 3}, {1, 2, 1, 1}},
    {{}, {}},
    {{4, 28, 28, 3}, {0, 0, 2, 2, 2, 2, 0, 0}},
    {{2, 2, 2, 2, 2}, {1, 1, 0, 1, 1, 0, 0, 0, 1, 1}},
    {{100, 300}, {50, 60, 70, 80}},
};

TEST(Pad, WithZerosAndValues) {
  for (const Case& c : kCases) {
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.shape);
      const auto inside = [&](const Dims& place) -> std::optional<Dims> {
        Dims from = place;
        for (int i = 0; i < c.shape.rank(); ++i) {
          from[i] -= c.pads[2 * i];
          if (from[i] < 0 || from[i] >= c.shape.dim(i)) return std::nullopt;
        }
        return from;
      };
      ExpectMoved(OpCall{"Pad", {x, Pairs(c.pads)}}.Run1(), PaddedShape(c), x, inside);
      const Tensor value = Sample(dtype, {}, 555);
      ExpectMoved(OpCall{"PadV2", {x, Pairs(c.pads), value}}.Run1(), PaddedShape(c), x, inside,
                  value);
    }
  }
}

TEST(Pad, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  OpCall{"Pad", {x, Pairs({-1, 2, 0, 0})}}.ExpectError("Paddings must be non-negative: -1 2");
  OpCall{"Pad", {x, Pairs({1, 2})}}.ExpectError(
      "The first dimension of paddings must be the rank of inputs, 2; paddings has shape [1,2]");
  OpCall{"Pad", {x, Ints({1, 2})}}.ExpectError("paddings must be a matrix");
  OpCall{"PadV2", {x, Pairs({0, 0, 0, 0}), Ints({1})}}.ExpectError("");
  const Tensor huge = Tensor::Of<int64_t>({2, 2}, {INT64_MAX, INT64_MAX, 0, 0});
  OpCall{"Pad", {x, huge}}.ExpectError("");
}

// Returns the position in a dimension of `size` elements whose element is copied to position i,
// which may lie in the padding.
int64_t Mirror(int64_t i, int64_t size, bool symmetric) {
  if (i < 0) return symmetric ? -1 - i : -i;
  if (i >= size) return symmetric ? 2 * size - 1 - i : 2 * size - 2 - i;
  return i;
}

const Case kMirrorCases[] = {
    {{5}, {2, 1}},
    {{5}, {4, 4}},
    {{3, 4}, {1, 2, 0, 3}},
    {{3, 4}, {0, 0, 0, 0}},
    {{2, 3, 4}, {1, 0, 0, 2, 1, 1}},
    {{}, {}},
    {{0, 3}, {0, 0, 1, 1}},
    {{1, 20, 30, 3}, {0, 0, 9, 3, 7, 8, 0, 0}},
};

TEST(MirrorPad, ReflectsAndFoldsBack) {
  for (const bool symmetric : {false, true}) {
    const Attrs mode = {{"mode", symmetric ? "SYMMETRIC" : "REFLECT"}};
    for (const Case& c : kMirrorCases) {
      const Shape padded = PaddedShape(c);
      const auto source = [&](const Dims& place) {
        Dims from = place;
        for (int i = 0; i < c.shape.rank(); ++i) {
          from[i] = Mirror(place[i] - c.pads[2 * i], c.shape.dim(i), symmetric);
        }
        return from;
      };
      for (const DType dtype : kMovedTypes) {
        const Tensor x = Sample(dtype, c.shape);
        ExpectMoved(OpCall{"MirrorPad", {x, Pairs(c.pads)}, mode}.Run1(), padded, x, source);
      }
      Tensor dy(DType::kDouble, padded), dx(DType::kDouble, c.shape);
      for (int64_t i = 0; i < dy.num_elements(); ++i) dy.mutable_data<double>()[i] = 1 + i % 101;
      for (double& sum : dx.mutable_flat<double>()) sum = 0;
      ForEachPlace(padded, [&](const Dims& place) {
        dx.mutable_data<double>()[FlatIndex(c.shape, source(place))] +=
            dy.data<double>()[FlatIndex(padded, place)];
      });
      EXPECT_TRUE(SameTensor(OpCall{"MirrorPadGrad", {dy, Pairs(c.pads)}, mode}.Run1(), dx));
    }
  }
}

TEST(MirrorPad, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  const auto expect = [&](const char* op, const char* mode, std::vector<int32_t> pads,
                          const char* words) {
    OpCall{op, {x, Pairs(pads)}, {{"mode", mode}}}.ExpectError(words);
  };
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    expect("MirrorPad", mode, {-1, 0, 0, 0}, "Paddings must be non-negative");
    expect("MirrorPad", mode, {3, 0, 0, 0}, "the dimension size: 3, 0");
    expect("MirrorPadGrad", mode, {3, 0, 0, 0}, "leave nothing");
    expect("MirrorPadGrad", mode, {0, 0, 0, 2}, "the dimension size: 0, 2");
    expect("MirrorPadGrad", mode, {1, 0}, "must be the rank of inputs, 2");
  }
  expect("MirrorPad", "REFLECT", {2, 0, 0, 0}, "must be less than the dimension size: 2, 0");
}

TEST(Tile, Repeats) {
  struct TileCase {
    Shape shape;
    std::vector<int32_t> multiples;
  };
  const TileCase cases[] = {
      {{3}, {4}},
      {{3}, {0}},
      {{3}, {1}},
      {{2, 3}, {2, 1}},
      {{2, 3}, {1, 3}},
      {{1, 5}, {70, 1}},
      {{5, 1}, {1, 70}},
      {{2, 3, 2}, {2, 2, 3}},
      {{}, {}},
      {{0, 2}, {3, 2}},
      {{100, 1, 33}, {1, 7, 2}},
  };
  for (const TileCase& c : cases) {
    Dims dims;
    for (int i = 0; i < c.shape.rank(); ++i) dims.push_back(c.shape.dim(i) * c.multiples[i]);
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.shape);
      ExpectMoved(OpCall{"Tile", {x, Ints(c.multiples)}}.Run1(), Shape(dims), x,
                  [&](const Dims& place) {
                    Dims from = place;
                    for (int i = 0; i < c.shape.rank(); ++i) from[i] %= c.shape.dim(i);
                    return from;
                  });
    }
  }
}

TEST(TileGrad, AddsUp) {
  const Tensor dy = Tensor::Of<std::complex<float>>({2, 4}, {1, 2, 3, 4, 5, 6, 7, {8, 1}});
  EXPECT_TRUE(SameTensor(OpCall{"TileGrad", {dy, Ints({2, 2})}}.Run1(),
                         Tensor::Of<std::complex<float>>({1, 2}, {16, {20, 1}})));
  OpCall{"TileGrad", {dy, Ints({2, 3})}}.ExpectError("is not a multiple of multiples[1] = 3");
  OpCall{"TileGrad", {dy, Ints({2, 0})}}.ExpectError("is not a multiple of multiples[1] = 0");
}

TEST(Tile, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  OpCall{"Tile", {x, Ints({1, -1})}}.ExpectError("Expected multiples[1] >= 0, but got -1");
  OpCall{"Tile", {x, Ints({1})}}.ExpectError(
      "Expected multiples argument to be a vector of length 2 but got length 1");
  OpCall{"Tile", {x, Longs({INT64_MAX, 2})}}.ExpectError("");
}

}  // namespace
}  // namespace penstock
