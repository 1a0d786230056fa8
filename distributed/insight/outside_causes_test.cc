// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/outside_causes.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kPatienceMs = 1'000;

// Parses a report; $W and $P stand for the tasks worker 0 and ps 0.
wire::ClusterReport ParseCluster(const std::string& text) {
  wire::ClusterReport cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrReplaceAll(
          text, {{"$W", "/job:worker/replica:0/task:0"}, {"$P", "/job:ps/replica:0/task:0"}}),
      &cluster))
      << text;
  return cluster;
}

std::vector<std::string> CutPairs(const std::string& text) {
  const wire::ClusterReport cluster = ParseCluster(text);
  return FindCutPairs(cluster, WaitGraph(cluster), kPatienceMs);
}

// Returns a cluster of two tasks that have answered. The worker's report contains `more`, the ps's
// report `of_ps`.
std::string TwoTasks(const std::string& more, const std::string& of_ps = "") {
  return absl::StrCat("asked: '$W' task { name: '$W' report { ", more,
                      " } } task { name: '$P' report { self { incarnation: 7 } ", of_ps, " } }");
}

TEST(FindCutPairsTest, NamesTasksWhoseHeartbeatsAreNotAnswered) {
  const auto found =
      CutPairs(TwoTasks("peer { task: '$P' incarnation: 7 heartbeats_missed: 3 silent_ms: 4000 }"));
  EXPECT_THAT(
      found, ElementsAre(AllOf(HasSubstr("/job:worker/task:0 cannot reach /job:ps/task:0, for 4 s"),
                               HasSubstr("3 heartbeats in a row were not answered"))));
}

TEST(FindCutPairsTest, NamesAPairOnceIfNeitherReachesTheOther) {
  const auto found =
      CutPairs(TwoTasks("self { incarnation: 5 } "
                        "peer { task: '$P' incarnation: 7 heartbeats_missed: 3 silent_ms: 4000 }",
                        "peer { task: '$W' incarnation: 5 heartbeats_missed: 2 silent_ms: 9000 }"));
  EXPECT_THAT(found, ElementsAre(AllOf(HasSubstr("cannot reach each other, for 9 s"),
                                       HasSubstr("/job:ps/task:0 and /job:worker/task:0"))));
}

TEST(FindCutPairsTest, OneLostHeartbeatOrARestartIsNoCut) {
  EXPECT_THAT(
      CutPairs(TwoTasks("peer { task: '$P' incarnation: 7 heartbeats_missed: 1 silent_ms: 4000 }")),
      IsEmpty());
  EXPECT_THAT(
      CutPairs(TwoTasks("peer { task: '$P' incarnation: 7 heartbeats_missed: 3 silent_ms: 900 }")),
      IsEmpty());
  EXPECT_THAT(
      CutPairs(TwoTasks("peer { task: '$P' incarnation: 6 heartbeats_missed: 3 silent_ms: 4000 }")),
      IsEmpty());
}

// The task is down; the network works.
TEST(FindCutPairsTest, ATaskThatDoesNotAnswerIsNotCutOff) {
  EXPECT_THAT(
      CutPairs("asked: '$W' task { name: '$W' report { peer { task: '$P' heartbeats_missed: 9 "
               "silent_ms: 9000 } } } task { name: '$P' error { message: 'refused' } }"),
      IsEmpty());
}

TEST(FindCutPairsTest, NamesTasksThatANewSessionWaitsFor) {
  const std::string session =
      "new_session { age_ms: $A unanswered { task: '$P' error { message: 'no route' } } }";
  EXPECT_THAT(CutPairs(TwoTasks(absl::StrReplaceAll(session, {{"$A", "5000"}}))),
              ElementsAre(AllOf(HasSubstr("for 5 s"), HasSubstr("(no route)"))));
  EXPECT_THAT(CutPairs(TwoTasks(absl::StrReplaceAll(session, {{"$A", "500"}}))), IsEmpty());
}

TEST(FindCutPairsTest, NamesATensorThatIsReadyButNotAskedFor) {
  const std::string waits =
      "part { step_id: 3 wait { tensor: 'w:0' from_device: '$P/device:CPU:0' age_ms: 2000 } }";
  EXPECT_THAT(CutPairs(TwoTasks(waits, "part { step_id: 3 unasked_by: '$W' }")),
              ElementsAre(HasSubstr("the tensor 'w:0' of step 3 is ready, but was not asked for")));
  EXPECT_THAT(CutPairs(TwoTasks(waits, "part { step_id: 3 }")), IsEmpty());
  EXPECT_THAT(CutPairs(TwoTasks(waits, "part { step_id: 4 unasked_by: '$W' }")), IsEmpty());
}

TEST(FindCutPairsTest, NamesATaskThatOnlyTheOperatorReaches) {
  EXPECT_THAT(CutPairs("asked: '$W' task { name: '$W' report {} } task { name: '$P' report {} "
                       "unreached_by_asked { message: 'timed out' } }"),
              ElementsAre(HasSubstr("/job:worker/task:0 cannot reach /job:ps/task:0, although")));
}

constexpr char kAwaitedTasks[] =
    "awaited_variable { name { name: 'w' } age_ms: 2000 first_age_ms: 60000 times: 3 }";

std::vector<std::string> Awaited(const std::string& text) {
  return FindAwaitedVariables(ParseCluster(text), kPatienceMs);
}

TEST(FindAwaitedVariablesTest, NamesVariablesAndTheChief) {
  const auto found = Awaited(absl::StrCat("task { name: '$P' report { ", kAwaitedTasks,
                                          " } } task { name: '$W' report { session {} } }"));
  EXPECT_THAT(found,
              ElementsAre(AllOf(
                  HasSubstr("Nobody has initialised the variable 'w' on /job:ps/task:0. Clients "
                            "wait for it, for 60 s: they have asked 3 times, last 2 s ago"),
                  HasSubstr("the chief, in most programs /job:worker/task:0, has a session"),
                  HasSubstr("Sessions now: /job:worker/task:0 (1)"))));
}

// If the cluster has a job "chief", its task is the chief, else the worker.
TEST(FindAwaitedVariablesTest, SaysWhatTheChiefLacks) {
  const std::string tasks = absl::StrCat("task { name: '$P' report { session {} ", kAwaitedTasks,
                                         " } } task { name: '$W' report {} } ");
  const std::string chief = "task { name: '/job:chief/replica:0/task:0' ";
  EXPECT_THAT(Awaited(tasks), ElementsAre(HasSubstr("/job:worker/task:0, has no session: its")));
  EXPECT_THAT(Awaited(tasks + chief + "error { message: 'refused' } }"),
              ElementsAre(HasSubstr("/job:chief/task:0, does not answer")));
  EXPECT_THAT(Awaited(tasks + chief + "report { new_session {} } }"),
              ElementsAre(HasSubstr("/job:chief/task:0, has no session yet, because")));
}

TEST(FindAwaitedVariablesTest, OnlyTheFirstNamesAreListed) {
  std::string text = "task { name: '$P' report { session {} ";
  for (int i = 0; i < 7; ++i) {
    absl::StrAppend(&text,
                    absl::StrReplaceAll(kAwaitedTasks, {{"'w'", absl::StrCat("'w", i, "'")}}));
  }
  EXPECT_THAT(Awaited(text + " } }"),
              ElementsAre(AllOf(HasSubstr("the variables 'w0', 'w1', 'w2', 'w3', 'w4' and 2 more"),
                                Not(HasSubstr("'w5'")))));
}

TEST(FindAwaitedVariablesTest, AClientThatHasStoppedAskingDoesNotWait) {
  const auto with = [](const std::string& ages) {
    return Awaited("task { name: '$P' report { session {} awaited_variable { name { name: 'w' } " +
                   ages + " } } }");
  };
  EXPECT_THAT(with("age_ms: 36000 first_age_ms: 60000 times: 3"), IsEmpty());
  EXPECT_THAT(with("age_ms: 900 first_age_ms: 900 times: 3"), IsEmpty());
  EXPECT_THAT(with("age_ms: 900 first_age_ms: 60000 times: 1"), IsEmpty());
  EXPECT_THAT(Awaited(absl::StrCat("task { name: '$P' report { ", kAwaitedTasks, " } }")),
              IsEmpty())
      << "without a session nobody waits";
}

TEST(FindFailedSavesTest, NamesTheFileTheNodeAndHowOften) {
  const std::string failed =
      "failed_save { path: '/d/model-3' node: 'save' error { message: 'disk full' } age_ms: 5000 "
      "first_age_ms: 90000 times: $N }";
  const auto find = [&](const char* times, const std::string& session) {
    return FindFailedSaves(ParseCluster("task { name: '$P' report { " + session +
                                        absl::StrReplaceAll(failed, {{"$N", times}}) + " } }"));
  };
  EXPECT_THAT(find("2", "session {}"),
              ElementsAre(AllOf(HasSubstr("Checkpoint /d/model-3 could not be written by "
                                          "/job:ps/task:0, 5 s ago: 'save' failed with disk full."),
                                HasSubstr("failure number 2 in a row there, for 90 s."))));
  EXPECT_THAT(find("1", "session {}"), ElementsAre(Not(HasSubstr("in a row"))));
  EXPECT_THAT(find("2", ""), IsEmpty()) << "no session will try again";
}

}  // namespace
}  // namespace penstock
