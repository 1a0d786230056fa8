// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

struct Case {
  Shape shape;
  std::vector<int32_t> perm;
};

void Check(const Case& c, DType dtype) {
  const Tensor x = Sample(dtype, c.shape);
  const Tensor y = OpCall{"Transpose", {x, Ints(c.perm)}}.Run1();
  Dims dims;
  for (const int32_t axis : c.perm) dims.push_back(c.shape.dim(axis));
  ExpectMoved(y, Shape(dims), x, [&](const Dims& place) {
    Dims from(place.size());
    for (size_t i = 0; i < place.size(); ++i) from[c.perm[i]] = place[i];
    return from;
  });
}

TEST(Transpose, EveryPermutationOfFourDimensions) {
  std::vector<int32_t> perm = {0, 1, 2, 3};
  do {
    Check({{3, 5, 2, 4}, perm}, DType::kFloat);
    Check({{2, 1, 17, 3}, perm}, DType::kInt8);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Transpose, EveryTypeAndShape) {
  const Case cases[] = {
      {{}, {}},
      {{4}, {0}},
      {{33, 17}, {1, 0}},
      {{0, 3}, {1, 0}},
      {{2, 0, 3}, {2, 0, 1}},
      {{8, 28, 28, 3}, {0, 3, 1, 2}},
      {{8, 3, 28, 28}, {0, 2, 3, 1}},
      {{2, 3, 4, 5, 6}, {4, 1, 3, 2, 0}},
      {{2, 2, 2, 2, 2, 2, 2}, {6, 0, 5, 1, 4, 2, 3}},
      {{1, 7, 1, 5}, {1, 2, 3, 0}},
  };
  for (const Case& c : cases) {
    for (const DType dtype : kMovedTypes) Check(c, dtype);
  }
}

TEST(Transpose, SharesTheBufferWhereOrderStays) {
  const Tensor x = Sample(DType::kFloat, {1, 7, 1, 5});
  EXPECT_TRUE((OpCall{"Transpose", {x, Ints({1, 2, 3, 0})}}.Run1().SharesBufferWith(x)));
  EXPECT_FALSE((OpCall{"Transpose", {x, Ints({3, 2, 1, 0})}}.Run1().SharesBufferWith(x)));
}

TEST(Transpose, LongPermutation) {
  const Tensor x = Sample(DType::kInt64, {2, 3});
  const Tensor y = OpCall{"Transpose", {x, Longs({1, 0})}}.Run1();
  EXPECT_EQ(y.shape(), Shape({3, 2}));
}

TEST(Transpose, Conjugates) {
  using C = std::complex<double>;
  const Tensor x = Tensor::Of<C>({1, 2}, {C(1, 2), C(3, -4)});
  EXPECT_TRUE(SameTensor(OpCall{"ConjugateTranspose", {x, Ints({1, 0})}}.Run1(),
                         Tensor::Of<C>({2, 1}, {C(1, -2), C(3, 4)})));
  EXPECT_EQ(x.data<C>()[0], C(1, 2));
  const Tensor real = Tensor::Of<float>({1, 2}, {5, 6});
  EXPECT_TRUE(SameTensor(OpCall{"ConjugateTranspose", {real, Ints({1, 0})}}.Run1(),
                         Tensor::Of<float>({2, 1}, {5, 6})));
}

TEST(Transpose, NegativeAxesCountFromTheEnd) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  EXPECT_TRUE(SameTensor(OpCall{"Transpose", {x, Ints({-1, 0})}}.Run1(),
                         OpCall{"Transpose", {x, Ints({1, 0})}}.Run1()));
}

TEST(Transpose, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {2, 3});
  const auto expect = [&](const Tensor& perm, const char* words) {
    OpCall{"Transpose", {x, perm}}.ExpectError(words);
  };
  expect(Ints({0}), "transpose expects a vector of size 2. But input(1) is a vector of size 1");
  expect(Ints({0, 2}), "2 is out of range [0 .. 2)");
  expect(Ints({-3, 0}), "-3 is out of range [0 .. 2)");
  expect(Ints({0, 0}), "1 is missing from {0,0}");
  expect(Pairs({0, 1}), "perm must be a vector");
}

TEST(InvertPermutation, Inverts) {
  EXPECT_TRUE(SameTensor(OpCall{"InvertPermutation", {Ints({2, 4, 3, 0, 1})}}.Run1(),
                         Ints({3, 4, 0, 2, 1})));
  EXPECT_TRUE(SameTensor(OpCall{"InvertPermutation", {Longs({1, 0})}}.Run1(), Longs({1, 0})));
  EXPECT_TRUE(SameTensor(OpCall{"InvertPermutation", {Ints({})}}.Run1(), Ints({})));
  OpCall{"InvertPermutation", {Ints({0, 5})}}.ExpectError("5 is not between 0 and 2");
  OpCall{"InvertPermutation", {Ints({0, -1})}}.ExpectError("-1 is not between 0 and 2");
  OpCall{"InvertPermutation", {Ints({1, 1})}}.ExpectError("1 is duplicated in the input.");
  OpCall{"InvertPermutation", {Pairs({0, 1})}}.ExpectError("expects a 1D vector");
}

}  // namespace
}  // namespace penstock
