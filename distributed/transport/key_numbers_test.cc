// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/key_numbers.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

HashedKey Key(const std::string& tensor) {
  return HashedKey({.src_device = "/job:ps/replica:0/task:0/device:CPU:0",
                    .src_incarnation = 7,
                    .dst_device = "/job:worker/replica:0/task:1/device:CPU:0",
                    .tensor = tensor});
}

TEST(KeyNumbersTest, AKeyIsSpelledOutOnce) {
  KeyNumbers numbers;
  NumberedKeys keys;
  const std::string text = KeyNumbers::TextOf(Key("a"));
  const KeyNumbers::Number first = numbers.NumberOf(Key("a").In(5, 3));
  EXPECT_EQ(first.value, 1);
  EXPECT_TRUE(first.is_new);
  EXPECT_EQ(*keys.Find(1, text, 5, 3), Key("a").In(5, 3));
  const KeyNumbers::Number again = numbers.NumberOf(Key("a").In(5, 4));
  EXPECT_EQ(again.value, 1);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(*keys.Find(1, "", 5, 4), Key("a").In(5, 4));
  EXPECT_EQ(*keys.Find(1, "", 0, 0), Key("a"));
  EXPECT_EQ(numbers.NumberOf(Key("b")).value, 2);
}

TEST(KeyNumbersTest, AKeyWithoutANumberIsSpelledOutEachTime) {
  NumberedKeys keys;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*keys.Find(0, KeyNumbers::TextOf(Key("a")), 0, 0), Key("a"));
  }
}

TEST(KeyNumbersTest, WrongHeadersAreErrors) {
  NumberedKeys keys;
  const std::string text = KeyNumbers::TextOf(Key("a"));
  EXPECT_EQ(keys.Find(1, "", 0, 0).status(), DataLoss("key 1 has no name"));
  EXPECT_EQ(keys.Find(0, "", 0, 0).status(), DataLoss("key 0 has no name"));
  EXPECT_EQ(keys.Find(2, text, 0, 0).status(), DataLoss("key 2 is out of order"));
  EXPECT_FALSE(keys.Find(1, "no key", 0, 0).ok());
}

}  // namespace
}  // namespace penstock
