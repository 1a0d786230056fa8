// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/formed_group.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "distributed/collective/algorithms.h"
#include "gtest/gtest.h"

namespace penstock::collective {
namespace {

constexpr int kBroadcasts = 6000;
const TaskName kOwnRank{.job = "worker", .task = 0}, kOtherRank{.job = "worker", .task = 1};

std::string RankDevice(const TaskName& task) { return task.ToString() + "/device:CPU:0"; }

Rank RankOf(const TaskName& task) {
  return {.device = *DeviceName::Parse(RankDevice(task)), .task = task, .session = "s", .nonce = 1};
}

// The source of a broadcast does not wait for the receivers, so their messages may come when it
// has already forgotten the execution.
TEST(FormedGroupTest, ReceiversOfBroadcastsThatHaveEndedAreForgotten) {
  std::set<std::pair<uint64_t, uint16_t>> sent;  // executions and their fingerprints
  Status failed;
  const auto group = std::make_shared<FormedGroup>(FormedGroup::Options{
      .key = {.key = 1, .size = 2},
      .ranks = {RankOf(kOwnRank), RankOf(kOtherRank)},
      .self = kOwnRank,
      .threads = &Scheduler::Real(),
      .send =
          [&](const TaskName&, const HashedKey& key, Tensor, TensorSink::HandedOver handed_over) {
            const Address address = Address::Of(key);
            sent.emplace(address.execution, address.fingerprint);
            std::move(handed_over)();
          },
      .fail = [&](FormedGroup&, const Status& why) { failed = why; }});
  int completed = 0;
  for (int step = 1; step <= kBroadcasts; ++step) {
    group->Begin(0, step,
                 {.kind = CollectiveKind::kBroadcast,
                  .group_key = 1,
                  .group_size = 2,
                  .instance_key = 1,
                  .device = RankDevice(kOwnRank),
                  .is_source = true,
                  .input = Tensor::Vector<float>({1, 2}),
                  .dtype = DType::kFloat,
                  .shape = Shape({2})},
                 [&](const StatusOr<Tensor>& result) { completed += result.ok() ? 1 : 0; });
  }
  ASSERT_EQ(completed, kBroadcasts);
  ASSERT_EQ(sent.size(), static_cast<size_t>(kBroadcasts));
  for (const auto& [execution, fingerprint] : sent) {
    group->Receive(kOtherRank,
                   {.group = group->id(),
                    .execution = execution,
                    .fingerprint = fingerprint,
                    .tag = kReceiver.Number()},
                   Tensor::Scalar<int32_t>(1));
  }
  EXPECT_EQ(group->foreseen(), FormedGroup::kReceiversMax);
  EXPECT_EQ(failed, OkStatus());
}

// Executions that another task has begun are kept, unless only kReceiver messages tell of them.
TEST(FormedGroupTest, ExecutionsThatHaveBegunElsewhereAreKept) {
  const auto group = std::make_shared<FormedGroup>(FormedGroup::Options{
      .key = {.key = 1, .size = 2},
      .ranks = {RankOf(kOwnRank), RankOf(kOtherRank)},
      .self = kOwnRank,
      .threads = &Scheduler::Real(),
      .send = [](const TaskName&, const HashedKey&, Tensor, TensorSink::HandedOver) {},
      .fail = [](FormedGroup&, const Status& why) { ADD_FAILURE() << why; }});
  const Tensor value = Tensor::Scalar<int32_t>(1);
  for (uint64_t execution = 1; execution <= 2 * FormedGroup::kReceiversMax; ++execution) {
    const Address address{.group = group->id(), .execution = execution, .tag = kReceiver.Number()};
    group->Receive(kOtherRank, address, value);
    if (execution > 10) continue;
    Address announcement = address;
    announcement.tag = kAnnouncement.Number();
    group->Receive(kOtherRank, announcement, value);
  }
  EXPECT_EQ(group->foreseen(), FormedGroup::kReceiversMax + 10);
}

}  // namespace
}  // namespace penstock::collective
