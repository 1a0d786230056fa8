// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/presence.h"

#include <string>

#include "distributed/testing/test_cluster.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr char kPresentTask[] = "/job:worker/task:1";

class PresenceTest : public testing::Test {
 protected:
  Presence::Options OptionsOf(const std::string& training, double lifetime_seconds) {
    return {.training = training,
            .task = kPresentTask,
            .lifetime_seconds = lifetime_seconds,
            .new_session = [this] { return NewRemoteSession(cluster_.target("worker", 1), {}); }};
  }
  // Asks through the other task.
  StatusOr<bool> Ask(const std::string& training, double lifetime_seconds) {
    return Presence::IsPresent(cluster_.NewSession({.device_filters = {kPresentTask}}, "worker", 0),
                               training, kPresentTask, lifetime_seconds);
  }
  bool IsPresent(const std::string& training, double lifetime_seconds) {
    const auto present = Ask(training, lifetime_seconds);
    EXPECT_TRUE(present.ok()) << present.status();
    return present.ok() && *present;
  }

  TestCluster cluster_{{{"worker", 2}}};
};

TEST_F(PresenceTest, AClientIsPresentFromItsAnnouncementUntilItWithdraws) {
  EXPECT_FALSE(IsPresent("a", 10));
  Presence presence(OptionsOf("a", 10));
  EXPECT_FALSE(IsPresent("a", 10));
  ASSERT_EQ(presence.Announce(), OkStatus());
  EXPECT_TRUE(IsPresent("a", 10));
  EXPECT_FALSE(IsPresent("b", 10)) << "another training";
  presence.Withdraw();
  EXPECT_FALSE(IsPresent("a", 10));
  ASSERT_EQ(presence.Announce(), OkStatus());
  EXPECT_TRUE(IsPresent("a", 10));
}

TEST_F(PresenceTest, AnAnnouncementIsRenewedAndHasALifetime) {
  Presence presence(OptionsOf("a", 1));
  ASSERT_EQ(presence.Announce(), OkStatus());
  Env::Real().SleepForNanos(2'500'000'000);
  EXPECT_TRUE(IsPresent("a", 2)) << "renewed three times a second";
  EXPECT_FALSE(IsPresent("a", 1e-6)) << "older than its lifetime";
}

TEST_F(PresenceTest, ARestartedTaskKnowsTheClientAgainLater) {
  Presence presence(OptionsOf("a", 1.5));
  ASSERT_EQ(presence.Announce(), OkStatus());
  cluster_.Stop("worker", 1);
  EXPECT_FALSE(presence.Announce().ok());
  cluster_.Restart("worker", 1);
  bool present = false;
  for (int i = 0; i < 100 && !present; ++i) {
    Env::Real().SleepForNanos(100'000'000);
    const auto answer = Ask("a", 1.5);  // may fail right after the restart
    present = answer.ok() && *answer;
  }
  EXPECT_TRUE(present);
}

}  // namespace
}  // namespace penstock::client
