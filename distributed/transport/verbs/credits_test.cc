// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/credits.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(ImmediateTest, ComesBackAsItWas) {
  for (const auto kind :
       {Immediate::kPublished, Immediate::kConfirmed, Immediate::kPing, Immediate::kGoodbye}) {
    const Immediate sent{kind, Immediate::kMessagesMax, Immediate::kBytesMax - 1};
    const Immediate back = Immediate::Decode(sent.Encode());
    EXPECT_EQ(back.kind, kind);
    EXPECT_EQ(back.messages, sent.messages);
    EXPECT_EQ(back.bytes, sent.bytes);
  }
}

TEST(MessageCreditsTest, ASenderStopsUntilMessagesAreConfirmed) {
  MessageCredits credits(64);
  for (int i = 0; i < 24; ++i) {
    ASSERT_TRUE(credits.CanSend());
    credits.Sent();
  }
  EXPECT_FALSE(credits.CanSend());
  EXPECT_TRUE(credits.Confirmed(1).ok());
  EXPECT_TRUE(credits.CanSend());
  EXPECT_EQ(credits.Confirmed(24).code(), StatusCode::kDataLoss);
}

TEST(MessageCreditsTest, AReceiverConfirmsAQuarter) {
  MessageCredits credits(64);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(credits.Received().ok());
  EXPECT_FALSE(credits.ShouldConfirm(0, 1000));
  EXPECT_TRUE(credits.ShouldConfirm(250, 1000));
  ASSERT_TRUE(credits.Received().ok());
  EXPECT_TRUE(credits.ShouldConfirm(0, 1000));
  EXPECT_EQ(credits.TakeReceived(), 6);
  EXPECT_FALSE(credits.ShouldConfirm(249, 1000));
}

TEST(MessageCreditsTest, ASenderThatIgnoresItsLimitIsNoticed) {
  MessageCredits credits(64);
  for (int i = 0; i < 24; ++i) ASSERT_TRUE(credits.Received().ok());
  EXPECT_EQ(credits.Received().code(), StatusCode::kDataLoss);
}

// For any queue depth, the posted receives suffice for the messages of one direction, the
// confirmations of the other, and the pings.
TEST(MessageCreditsTest, PostedReceivesSufficeForAllMessages) {
  for (const int depth : {64, 65, 256, 1024}) {
    MessageCredits credits(depth);
    uint32_t messages = 0;
    for (; credits.CanSend(); credits.Sent()) ++messages;
    EXPECT_LE(2 * messages + MessageCredits::kReserve, depth);
    EXPECT_LE(messages, Immediate::kMessagesMax);
  }
}

}  // namespace
}  // namespace penstock
