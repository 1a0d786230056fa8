// SPDX-License-Identifier: Apache-2.0
#include "core/base/suggest.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(SuggestNames, NamesTheNearestFirst) {
  EXPECT_EQ(SuggestNames("layer/kernal", {"layer/bias", "layer/kernels", "layer/kernel"}),
            "; did you mean 'layer/kernel' or 'layer/kernels'?");
  EXPECT_EQ(SuggestNames("MATMUL", {"MatMul", "Mul"}), "; did you mean 'MatMul'?");
  EXPECT_EQ(SuggestNames("abcd", {"abc4", "abc3", "abc2", "abc1"}),
            "; did you mean 'abc1' or 'abc2' or 'abc3'?");
}

TEST(SuggestNames, HasLimits) {
  EXPECT_EQ(SuggestNames("loss", {"train", "cost"}), "; did you mean 'cost'?");
  EXPECT_EQ(SuggestNames("abcd", {"axxx"}), "");
  EXPECT_EQ(SuggestNames("x", {"y"}), "") << "one letter is not near another";
  EXPECT_EQ(SuggestNames("xy", {"xyz", "ab"}), "; did you mean 'xyz'?");
  EXPECT_EQ(SuggestNames("", {"a"}), "");
  const std::string longest(100, 'a'), longer(101, 'a');
  EXPECT_NE(SuggestNames(longest, {longer}), "");
  EXPECT_EQ(SuggestNames(longer, {longest}), "");
  EXPECT_EQ(SuggestNames("abcd", {}), "");
}

}  // namespace
}  // namespace penstock
