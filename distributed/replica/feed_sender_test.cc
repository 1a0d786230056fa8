// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/feed_sender.h"

#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// A follower that answers each push at once, and stores it in `pushes`.
class KeepingFollower final : public ReplicaClient {
 public:
  void Greet(const wire::GreetRequest&, int64_t, Answer<wire::GreetResponse> answer) override {
    std::move(answer)(Unimplemented("not called"));
  }
  void Follow(const wire::FollowRequest&, int64_t, Answer<wire::FollowResponse> answer) override {
    std::move(answer)(Unimplemented("not called"));
  }
  void Claim(const wire::ClaimRequest&, int64_t, Answer<wire::ClaimResponse> answer) override {
    std::move(answer)(Unimplemented("not called"));
  }
  void Push(const wire::PushRequest& push, int64_t timeout_ms,
            Answer<wire::PushResponse> answer) override {
    pushes.push_back(push);
    timeouts_ms.push_back(timeout_ms);
    wire::PushResponse response;
    response.set_number(push.number() + answers_ahead);
    std::move(answer)(response);
  }

  std::vector<wire::PushRequest> pushes;
  std::vector<int64_t> timeouts_ms;
  uint64_t answers_ahead = 0;
};

KeptChange ChangeOf(uint64_t position, int64_t elements) {
  KeptChange change;
  change.position = position;
  change.parts.push_back({.name = "v",
                          .type = "Variable",
                          .action = "assign",
                          .values = {Tensor::Vector<float>(std::vector<float>(elements, 1))}});
  return change;
}

class FeedSenderTest : public testing::Test {
 protected:
  std::shared_ptr<KeepingFollower> follower_ = std::make_shared<KeepingFollower>();
  ReplicaCalls calls_{{.task = "/job:ps/replica:0/task:0",
                       .scheduler = &Scheduler::Real(),
                       .peer = follower_,
                       .timeout_ms = 1'000}};
  FeedSender sender_{
      calls_, {.feed = 7, .epoch = 3, .push_bytes_max = 100, .piece_bytes = 200, .silent_ms = 50}};
};

TEST_F(FeedSenderTest, DividesTheCopy) {
  std::vector<KeptChange> copy;
  for (uint64_t i = 1; i <= 3; ++i) copy.push_back(ChangeOf(i, 15));  // 60 bytes each
  ASSERT_EQ(sender_.SendCopy(copy), OkStatus());
  ASSERT_EQ(follower_->pushes.size(), 2u);
  EXPECT_EQ(follower_->pushes[0].record_size(), 2);
  EXPECT_EQ(follower_->pushes[1].record_size(), 1);
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(follower_->pushes[i].number(), i + 1);
    EXPECT_EQ(follower_->pushes[i].feed(), 7u);
    EXPECT_EQ(follower_->pushes[i].epoch(), 3u);
    EXPECT_FALSE(follower_->pushes[i].whole());
  }
  EXPECT_FALSE(sender_.whole());
}

TEST_F(FeedSenderTest, ABatchMakesTheFollowerWhole) {
  ReplicaLog::Batch batch{.changes = {ChangeOf(4, 1)}, .committed = 4, .whole = true};
  ASSERT_EQ(sender_.SendBatch(&batch, /*is_new=*/true), OkStatus());
  EXPECT_TRUE(batch.changes.empty());
  EXPECT_EQ(sender_.committed(), 4u);
  EXPECT_TRUE(sender_.whole());
  ReplicaLog::Batch nothing;
  ASSERT_EQ(sender_.SendBatch(&nothing, /*is_new=*/false), OkStatus());
  ASSERT_EQ(follower_->pushes.size(), 2u);
  EXPECT_EQ(follower_->pushes[1].committed(), 4u);
  EXPECT_TRUE(follower_->pushes[1].whole());
  EXPECT_EQ(follower_->timeouts_ms[1], 50);
}

TEST_F(FeedSenderTest, SendsPiecesWithTheCutBefore) {
  ReplicaLog::Batch first{.committed = 2};
  ASSERT_EQ(sender_.SendBatch(&first, true), OkStatus());
  ReplicaLog::Batch large{.changes = {ChangeOf(3, 75)}, .committed = 3};  // 300 bytes
  ASSERT_EQ(sender_.SendBatch(&large, true), OkStatus());
  ASSERT_EQ(follower_->pushes.size(), 4u);  // two pieces between the two batches
  for (const int piece : {1, 2}) {
    EXPECT_TRUE(follower_->pushes[piece].has_piece());
    EXPECT_EQ(follower_->pushes[piece].committed(), 2u);
  }
  EXPECT_EQ(follower_->pushes[3].record_size(), 1);
  EXPECT_EQ(follower_->pushes[3].committed(), 3u);
}

TEST_F(FeedSenderTest, AnotherPushesAnswerIsAnError) {
  follower_->answers_ahead = 1;
  ReplicaLog::Batch batch{.committed = 5, .whole = true};
  EXPECT_EQ(sender_.SendBatch(&batch, true).code(), StatusCode::kDataLoss);
  EXPECT_EQ(sender_.committed(), 0u);
  EXPECT_FALSE(sender_.whole());
}

}  // namespace
}  // namespace penstock
