// SPDX-License-Identifier: Apache-2.0
#include "core/op/slices.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

using Numbers = std::vector<int64_t>;

TEST(Slices, AreSortedAndDistinct) {
  EXPECT_EQ(Slices(2, {3, 1, 3}).numbers(), (Numbers{1, 3}));
  EXPECT_EQ(Slices::Rows(Tensor::Vector<int32_t>({5, 0}), 4).numbers(), (Numbers{0, 5}));
  EXPECT_EQ(Slices::Rows(Tensor::Vector<int64_t>({5}), 4).length(), 4);
  EXPECT_TRUE(Slices::Rows(Tensor::Vector<int64_t>({5}), 0).numbers().empty());
}

TEST(Slices, Add) {
  Slices slices = Slices::None();
  EXPECT_FALSE(slices.all());
  slices.Add(Slices(2, {4}));
  slices.Add(Slices::None());
  slices.Add(Slices(2, {1, 4}));
  EXPECT_EQ(slices.numbers(), (Numbers{1, 4}));
  EXPECT_EQ(slices.length(), 2);
  Slices others = slices;
  others.Add(Slices(3, {0}));
  EXPECT_TRUE(others.all());
  slices.Add(Slices::All());
  EXPECT_TRUE(slices.all());
  slices.Add(Slices(2, {1}));
  EXPECT_TRUE(slices.all());
}

TEST(Slices, GatherAndScatter) {
  const Tensor from = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Slices slices(2, {2, 0});
  const auto elements = GatherSlices(from, slices);
  ASSERT_TRUE(elements.ok());
  EXPECT_EQ(elements->ToString(), "float[2,2] 1 2 5 6");
  Tensor to = Tensor::Of<float>({6}, {0, 0, 0, 0, 0, 0});
  const auto back = Slices::Of(slices.Numbers(), *elements);
  ASSERT_TRUE(back.ok());
  ASSERT_TRUE(ScatterSlices(*back, *elements, &to).ok());
  EXPECT_EQ(to.ToString(), "float[6] 1 2 0 0 5 6");
}

TEST(Slices, OfStrings) {
  const Tensor from = Tensor::Vector<std::string>({"a", "b", "c"});
  const auto elements = GatherSlices(from, Slices(1, {1}));
  ASSERT_TRUE(elements.ok());
  Tensor to = Tensor::Vector<std::string>({"x", "y", "z"});
  ASSERT_TRUE(ScatterSlices(Slices(1, {1}), *elements, &to).ok());
  EXPECT_EQ(to.ToString(), "string[3] \"x\" \"b\" \"z\"");
}

TEST(Slices, WhatDoesNotFitChangesNothing) {
  const Tensor matrix = Tensor::Of<float>({1, 2}, {8, 9});
  EXPECT_FALSE(Slices::Of(Tensor::Vector<int64_t>({1, 2}), matrix).ok());
  EXPECT_FALSE(Slices::Of(Tensor::Vector<int32_t>({1}), matrix).ok());
  EXPECT_FALSE(Slices::Of(Tensor::Vector<int64_t>({1}), Tensor::Vector<float>({8, 9})).ok());
  const Tensor two = Tensor::Of<float>({2, 1}, {8, 9});
  EXPECT_FALSE(Slices::Of(Tensor::Vector<int64_t>({2, 1}), two).ok());
  EXPECT_FALSE(Slices::Of(Tensor::Vector<int64_t>({1, 1}), two).ok());
  Tensor to = Tensor::Vector<float>({1, 2, 3});
  for (const int64_t number : {-1, 1, 1 << 30}) {
    EXPECT_FALSE(ScatterSlices(Slices(2, {number}), matrix, &to).ok());
  }
  EXPECT_FALSE(ScatterSlices(Slices(0, {0}), Tensor::Of<float>({1, 0}, {}), &to).ok());
  Tensor ints = Tensor::Vector<int32_t>({1, 2});
  EXPECT_FALSE(ScatterSlices(Slices(2, {0}), matrix, &ints).ok());
  EXPECT_EQ(to.ToString(), "float[3] 1 2 3");
}

}  // namespace
}  // namespace penstock
