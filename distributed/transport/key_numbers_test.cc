// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/key_numbers.h"

#include "distributed/transport/testing/test_key.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(KeyNumbersTest, AKeyIsSpelledOutOnce) {
  KeyNumbers numbers;
  NumberedKeys keys;
  const std::string text = KeyNumbers::TextOf(TestKey("a"));
  const KeyNumbers::Number first = numbers.NumberOf(TestKey("a").In(5, 3));
  EXPECT_EQ(first.value, 1);
  EXPECT_TRUE(first.is_new);
  EXPECT_EQ(*keys.Find(1, text, 5, 3), TestKey("a").In(5, 3));
  const KeyNumbers::Number again = numbers.NumberOf(TestKey("a").In(5, 4));
  EXPECT_EQ(again.value, 1);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(*keys.Find(1, "", 5, 4), TestKey("a").In(5, 4));
  EXPECT_EQ(*keys.Find(1, "", 0, 0), TestKey("a"));
  EXPECT_EQ(numbers.NumberOf(TestKey("b")).value, 2);
}

TEST(KeyNumbersTest, AKeyWithoutANumberIsSpelledOutEachTime) {
  NumberedKeys keys;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*keys.Find(0, KeyNumbers::TextOf(TestKey("a")), 0, 0), TestKey("a"));
  }
}

TEST(KeyNumbersTest, WrongHeadersAreErrors) {
  NumberedKeys keys;
  const std::string text = KeyNumbers::TextOf(TestKey("a"));
  EXPECT_EQ(keys.Find(1, "", 0, 0).status(), DataLoss("key 1 has no name"));
  EXPECT_EQ(keys.Find(0, "", 0, 0).status(), DataLoss("key 0 has no name"));
  EXPECT_EQ(keys.Find(2, text, 0, 0).status(), DataLoss("key 2 is out of order"));
  EXPECT_FALSE(keys.Find(1, "no key", 0, 0).ok());
}

}  // namespace
}  // namespace penstock
