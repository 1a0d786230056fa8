// SPDX-License-Identifier: Apache-2.0
#include "client/presence.h"

#include <memory>
#include <string>

#include "client/chief_hook.h"
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
    return Presence::IsPresent(
        cluster_.NewSession({.device_filters = {kPresentTask}}, "worker", 0), training,
        kPresentTask, lifetime_seconds);
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

// Counts its calls.
class CountingHook : public TrainingHook {
 public:
  explicit CountingHook(int& steps) : steps_(steps) {}
  Status AfterStep(const StepResult& result, bool* stop) override {
    ++steps_;
    return OkStatus();
  }

 private:
  int& steps_;
};

TEST(ChiefHookTest, IsMadeForEachTimeAsChief) {
  const GraphBuilder graph;
  Session session(graph, nullptr);
  bool is_chief = false, stop = false;
  int made = 0, steps = 0;
  ChiefHook hook([&] { return is_chief; },
                 [&]() -> StatusOr<std::unique_ptr<TrainingHook>> {
                   if (++made == 3) return ResourceExhausted("no third one");
                   return std::make_unique<CountingHook>(steps);
                 });
  const auto run_session = [&](bool chief) {
    is_chief = chief;
    RETURN_IF_ERROR(hook.SessionBegins({.session = session}));
    return hook.AfterStep({}, &stop);
  };
  EXPECT_EQ(run_session(false), OkStatus());
  EXPECT_EQ(steps, 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run_session(true), OkStatus());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(run_session(false), OkStatus());
  EXPECT_EQ(run_session(true), OkStatus());
  EXPECT_EQ(made, 2);
  EXPECT_EQ(run_session(false), OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(run_session(true)));
}

}  // namespace
}  // namespace penstock::client
