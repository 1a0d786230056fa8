// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/group_table.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::collective {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr GroupKey kPair{.key = 1, .size = 2};
const TaskName kThisTask{.job = "worker", .task = 0}, kOtherTask{.job = "worker", .task = 1};

DeviceName CpuOf(const TaskName& task) {
  return *DeviceName::Parse(task.ToString() + "/device:CPU:0");
}

GroupTable::JoinedRank JoinedRankOf(const TaskName& task, uint64_t nonce) {
  return {.rank = {.device = CpuOf(task), .task = task, .session = "s", .nonce = nonce},
          .own = task == kThisTask};
}

class GroupTableTest : public testing::Test {
 protected:
  GroupTable::Group& Join(const GroupKey& key, const TaskName& task, uint64_t nonce) {
    GroupTable::Group& group = table_.At(key);
    group.joined[CpuOf(task)] = JoinedRankOf(task, nonce);
    return group;
  }
  // Adds a call of this task's rank; `ended` receives its error.
  void AddWaiting(GroupTable::Group& group, Status* ended) {
    group.waiting.push_back({.pending = std::make_shared<PendingCall>(
                                 nullptr, DeadlineTimer::Real(),
                                 [ended](StatusOr<Tensor> result) { *ended = result.status(); }),
                             .session = "s",
                             .device = CpuOf(kThisTask),
                             .tasks = {kOtherTask}});
  }

  GroupTable table_{kThisTask, /*groups_max=*/2, /*early_bytes_max=*/1 << 20};
  GroupActions actions_;
};

TEST_F(GroupTableTest, TakesTheRanksWhenTheLastHasJoined) {
  EXPECT_THAT(table_.TakeJoined(kPair, Join(kPair, kOtherTask, 2)), SizeIs(0));
  EXPECT_THAT(table_.DescribeJoined(kPair), HasSubstr("1 of its ranks"));
  const std::vector<Rank> ranks = table_.TakeJoined(kPair, Join(kPair, kThisTask, 1));
  ASSERT_THAT(ranks, SizeIs(2));
  EXPECT_EQ(ranks[0].task, kThisTask);
  EXPECT_THAT(table_.At(kPair).joined, SizeIs(0));
}

TEST_F(GroupTableTest, AGroupOfOtherTasksIsNotItsOwn) {
  const GroupKey single{.key = 1, .size = 1};
  EXPECT_THAT(table_.TakeJoined(single, Join(single, kOtherTask, 2)), SizeIs(0));
  EXPECT_THAT(table_.At(single).joined, SizeIs(0));
}

TEST_F(GroupTableTest, IsFullUntilUnusedGroupsAreForgotten) {
  Join({.key = 1, .size = 2}, kThisTask, 1);
  Join({.key = 2, .size = 2}, kOtherTask, 2);
  EXPECT_EQ(table_.CheckRoomFor({.key = 2, .size = 2}), OkStatus());
  const Status full = table_.CheckRoomFor({.key = 3, .size = 2});
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("group 3 of 2 ranks"));
  table_.ForgetRanksOf(kOtherTask);
  EXPECT_EQ(table_.CheckRoomFor({.key = 3, .size = 2}), OkStatus());
  EXPECT_EQ(table_.Find({.key = 2, .size = 2}), nullptr);
}

TEST_F(GroupTableTest, AFailedCallRevokesItsJoin) {
  GroupTable::Group& group = Join(kPair, kThisTask, 7);
  Status ended;
  AddWaiting(group, &ended);
  table_.FailWaiting(
      Cancelled("why"), [](const GroupTable::Waiting&) { return true; }, &actions_);
  EXPECT_THAT(group.waiting, SizeIs(0));
  EXPECT_THAT(group.joined, SizeIs(0));
  ASSERT_THAT(actions_.messages, SizeIs(1));
  EXPECT_EQ(actions_.messages[0].task, kOtherTask);
  EXPECT_EQ(std::get<Leave>(actions_.messages[0].message).nonces, std::vector<uint64_t>{7});
  EXPECT_EQ(ended, OkStatus()) << "the table has called the continuation itself";
  for (const auto& call : actions_.calls) call();
  EXPECT_EQ(ended, Cancelled("why"));
}

TEST_F(GroupTableTest, AJoinThatWasRevokedIsKnown) {
  EXPECT_FALSE(table_.HasHandled(5));
  table_.Revoke({5});
  EXPECT_TRUE(table_.HasHandled(5));
}

TEST_F(GroupTableTest, TellsANewTaskOfThisTasksRanks) {
  Join(kPair, kThisTask, 7);
  Join({.key = 2, .size = 2}, kOtherTask, 8);
  table_.AddJoinMessages(kOtherTask, &actions_);
  ASSERT_THAT(actions_.messages, SizeIs(1));
  EXPECT_EQ(std::get<collective::Join>(actions_.messages[0].message).nonce, 7u);
}

}  // namespace
}  // namespace penstock::collective
