// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/stuck_watch.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kMaster[] = "/job:worker/replica:0/task:0";
constexpr char kStuckPs[] = "/job:ps/replica:0/task:0";

class StuckWatchTest : public testing::Test {
 protected:
  StuckWatchTest() {
    Add(kMaster);
    Add(kStuckPs);
  }

  void Add(const char* name) {
    wire::ClusterTask* const task = cluster_.add_task();
    task->set_name(name);
    task->mutable_report();
  }
  void Set(int task, const std::string& report) {
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        report, cluster_.mutable_task(task)->mutable_report()));
  }
  // Lets the watch look once, and returns the texts that it prints.
  std::vector<std::string> Look() {
    said_.clear();
    watch_.Look();
    return said_;
  }

  wire::ClusterReport cluster_;
  int asked_ = 0;
  std::vector<std::string> said_;
  StuckWatch watch_{{.patience_ms = 1'000,
                     .ask_task = [this] { return cluster_.task(0).report(); },
                     .ask_cluster =
                         [this] {
                           ++asked_;
                           return cluster_;
                         },
                     .say = [this](const std::string& text) { said_.push_back(text); }}};
};

constexpr char kWaitsAtPs[] =
    "part { step_id: 7 session: 's' age_ms: 5000 "
    "wait { node: 'take' op: 'QueueDequeueV2' age_ms: 4900 } }";

std::string OwnStep(int age_ms) {
  return "session { handle: 's' step { step_id: 7 age_ms: " + std::to_string(age_ms) +
         " running_in: '" + kStuckPs + "' } }";
}

TEST_F(StuckWatchTest, AStepThatWaitsIsTold) {
  Set(0, OwnStep(5'000));
  Set(1, kWaitsAtPs);
  EXPECT_THAT(Look(), ElementsAre(StartsWith("no progress: step 7, for 5 s. ")));
  EXPECT_THAT(said_[0], HasSubstr("'take'"));
}

TEST_F(StuckWatchTest, ItIsToldAgainAtTwiceTheAge) {
  Set(0, OwnStep(5'000));
  Set(1, kWaitsAtPs);
  ASSERT_EQ(Look().size(), 1u);
  EXPECT_THAT(Look(), IsEmpty());
  Set(0, OwnStep(9'999));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(asked_, 1) << "the cluster is asked when there is something to tell";
  Set(0, OwnStep(10'000));
  EXPECT_EQ(Look().size(), 1u);
}

TEST_F(StuckWatchTest, AnEndedStepIsForgotten) {
  Set(0, OwnStep(5'000));
  Set(1, kWaitsAtPs);
  ASSERT_EQ(Look().size(), 1u);
  Set(0, "");
  EXPECT_THAT(Look(), IsEmpty());
  Set(0, OwnStep(5'000));
  EXPECT_EQ(Look().size(), 1u);
}

TEST_F(StuckWatchTest, AStepThatComputesAnywhereMakesProgress) {
  Set(0, OwnStep(5'000));
  Set(1, "part { step_id: 7 session: 's' age_ms: 5000 computing: true }");
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(StuckWatchTest, AYoungStepIsLeftAlone) {
  Set(0, OwnStep(999));
  Set(1, kWaitsAtPs);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(StuckWatchTest, StepsInTheClientsOwnProcessAreKnownByTheirWaits) {
  Set(0,
      "session { handle: 's' } part { step_id: 7 session: 's' age_ms: -1 "
      "wait { node: 'take' op: 'QueueDequeueV2' age_ms: 4900 } }");
  EXPECT_THAT(Look(), ElementsAre(StartsWith("no progress: step 7, for 4 s. ")));
}

TEST_F(StuckWatchTest, PartsOfOtherMastersStepsAreTheirs) {
  Set(0, kWaitsAtPs);
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(StuckWatchTest, ATaskThatIsSilentHoldsItsStepsUp) {
  Set(0, OwnStep(5'000));
  cluster_.mutable_task(1)->clear_report();
  cluster_.mutable_task(1)->mutable_error()->set_message("Connection refused");
  EXPECT_THAT(Look(), ElementsAre(HasSubstr("/job:ps/task:0 at  does not answer")));
}

}  // namespace
}  // namespace penstock
