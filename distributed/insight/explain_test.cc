// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/explain.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kA[] = "/job:worker/replica:0/task:0";
constexpr char kB[] = "/job:ps/replica:0/task:0";

// Replaces $A and $B by the names of the tasks, and $Q(name) by a queue on $B.
std::string Expand(std::string text) {
  for (size_t at; (at = text.find("$Q(")) != std::string::npos;) {
    const size_t end = text.find(')', at);
    const std::string name = text.substr(at + 3, end - at - 3);
    text.replace(at, end - at + 1,
                 absl::StrCat("{ device: '", kB, "/device:CPU:0' container: 'localhost' name: '",
                              name, "' }"));
  }
  return absl::StrReplaceAll(text, {{"$A", kA}, {"$B", kB}});
}

wire::TaskReport ReportOf(const std::string& text) {
  wire::TaskReport task;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(Expand(text), &task)) << text;
  return task;
}

class ExplainTest : public testing::Test {
 protected:
  void Add(const char* name, const std::string& report) {
    wire::ClusterTask* const task = cluster_.add_task();
    task->set_name(name);
    task->set_address("host:1");
    *task->mutable_report() = ReportOf(report);
  }
  void AddSilent(const char* name) {
    wire::ClusterTask* const task = cluster_.add_task();
    task->set_name(name);
    task->set_address("host:2");
    task->mutable_error()->set_message("Connection refused");
  }
  std::vector<std::string> Findings() { return Explain(cluster_).findings; }

  wire::ClusterReport cluster_;
};

constexpr char kDequeues[] = R"(
    part { step_id: 7 session: 's' age_ms: 5000
      wait { node: 'take' op: 'QueueDequeueV2' device: '$B/device:CPU:0' age_ms: 4000
             kind: TAKE resource $Q(q) }
      use { node: 'take' op: 'QueueDequeueV2' kind: TAKE state: WAITS resource $Q(q) } }
    resource { name $Q(q) type: 'FIFOQueue' queue { size: 0 capacity: 10 } })";

TEST_F(ExplainTest, AClusterWithoutStepsIsNotStuck) {
  Add(kA, "session { handle: 's' }");
  Add(kB, "");
  const Explanation explanation = Explain(cluster_);
  EXPECT_THAT(explanation.findings, IsEmpty());
  EXPECT_EQ(explanation.summary, "2 tasks, all answer; 1 session; no step runs");
  EXPECT_THAT(explanation.ToString(), HasSubstr("Nothing is stuck"));
}

TEST_F(ExplainTest, AQueueThatNobodyFills) {
  Add(kB, kDequeues);
  EXPECT_THAT(
      Findings(),
      ElementsAre(AllOf(
          HasSubstr(
              "Nobody fills FIFOQueue 'q' on /job:ps/task:0 (0 of 10 elements): 'take' waits, "
              "for 4 s"),
          HasSubstr("was never started"))));
}

TEST_F(ExplainTest, WhoTakesFromAQueueDoesNotFillIt) {
  Add(kB, kDequeues);
  Add(kA, R"(part { step_id: 8 computing: true
                    use { node: 'take2' kind: TAKE resource $Q(q) } })");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("Nobody fills FIFOQueue 'q'")));
}

TEST_F(ExplainTest, AStepThatComputesMayStillFillIt) {
  Add(kB, kDequeues);
  Add(kA, R"(part { step_id: 8 computing: true use { node: 'put' kind: PUT resource $Q(q) } })");
  EXPECT_THAT(Findings(), IsEmpty());
}

// The enqueue does not depend on the only waiting node of the step, so it has run already.
TEST_F(ExplainTest, AnEnqueueThatHasRunDoesNotFillItAgain) {
  Add(kB, kDequeues);
  Add(kA, R"(part { step_id: 8 wait { node: 'w' op: 'QueueDequeueV2' kind: TAKE age_ms: 2000
                                      resource $Q(other) }
                    use { node: 'put' kind: PUT resource $Q(q) } })");
  EXPECT_THAT(Findings(), testing::UnorderedElementsAre(HasSubstr("Nobody fills FIFOQueue 'q'"),
                                                        HasSubstr("Nobody fills 'other'")));
}

TEST_F(ExplainTest, AQueueThatNobodyEmpties) {
  Add(kB, R"(part { step_id: 7 wait { node: 'put' op: 'QueueEnqueueV2' kind: PUT age_ms: 2000
                                      resource $Q(q) } }
             resource { name $Q(q) type: 'FIFOQueue' queue { size: 2 capacity: 2 } })");
  EXPECT_THAT(Findings(),
              ElementsAre(HasSubstr("Nobody takes from FIFOQueue 'q' on /job:ps/task:0 (2 of 2")));
}

constexpr char kCycle[] = R"(
    part { step_id: 7 wait { node: 'take_right' kind: TAKE age_ms: 3000 resource $Q(right) }
           use { node: 'take_right' kind: TAKE state: WAITS resource $Q(right) }
           use { node: 'put_left' kind: PUT state: HELD_UP behind: 'take_right'
                 resource $Q(left) } }
    part { step_id: 8 wait { node: 'take_left' kind: TAKE age_ms: 3000 resource $Q(left) }
           use { node: 'take_left' kind: TAKE state: WAITS resource $Q(left) }
           use { node: 'put_right' kind: PUT state: HELD_UP behind: 'take_left'
                 resource $Q(right) } })";

TEST_F(ExplainTest, StepsThatWaitForEachOther) {
  Add(kB, kCycle);
  EXPECT_THAT(
      Findings(),
      ElementsAre(
          AllOf(HasSubstr("Steps wait for each other, in a cycle"),
                HasSubstr("'put_left' of step 7 in /job:ps/task:0 would fill it, but comes after "
                          "'take_right'"),
                HasSubstr("'put_right' of step 8 in /job:ps/task:0 would fill it, but comes after "
                          "'take_left'"))));
}

TEST_F(ExplainTest, AThirdStepThatMayFillOneOfTheQueuesOpensTheCycle) {
  Add(kB, kCycle);
  Add(kA, R"(part { step_id: 9 computing: true use { node: 'put' kind: PUT resource $Q(left) } })");
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_F(ExplainTest, AStepThatWaitsForItself) {
  Add(kB, R"(part { step_id: 7 wait { node: 'take' kind: TAKE age_ms: 3000 resource $Q(q) }
             use { node: 'put' kind: PUT state: HELD_UP behind: 'take' resource $Q(q) } })");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("A step waits for itself")));
}

TEST_F(ExplainTest, ALockThatAnotherStepHolds) {
  Add(kB, R"(part { step_id: 7 wait { node: 'lock' kind: LOCK age_ms: 3000 resource $Q(m) }
                    use { node: 'lock' kind: LOCK state: WAITS resource $Q(m) } }
             part { step_id: 8 wait { node: 'take' kind: TAKE age_ms: 3000 resource $Q(q) }
                    use { node: 'lock' kind: LOCK resource $Q(m) } })");
  const Explanation explanation = Explain(cluster_, 0);
  EXPECT_THAT(explanation.findings, ElementsAre(HasSubstr("Nobody fills 'q'")));
  EXPECT_THAT(
      explanation.ToString(),
      HasSubstr("'lock' of step 8 in /job:ps/task:0 has locked it, but comes after 'take'"));
}

// A wait for a tensor follows from the wait of the task that sends it, so the explanation names
// only the latter wait as the culprit.
TEST_F(ExplainTest, ATransferFollowsFromWhatItsSourceWaitsFor) {
  Add(kA, R"(session { handle: 's' step { step_id: 7 age_ms: 5000 target: 'train'
                                           running_in: '$A' running_in: '$B' } }
             part { step_id: 7 age_ms: 5000
                    wait { node: 'take/_1' op: '_Recv' age_ms: 4500 tensor: 'take:0'
                           from_device: '$B/device:CPU:0' } })");
  Add(kB, kDequeues);
  const Explanation explanation = Explain(cluster_);
  EXPECT_THAT(explanation.findings, ElementsAre(HasSubstr("Nobody fills")));
  EXPECT_THAT(
      explanation.steps,
      ElementsAre(AllOf(
          HasSubstr("step 7 of session s, for 5 s, runs train, master /job:worker/task:0"),
          HasSubstr(
              "'take/_1' (_Recv) waits, for 4 s, for the tensor 'take:0' from /job:ps/task:0"))));
}

// Tensors that go to a task and come back make each task wait for the other, but this is
// never a cycle.
TEST_F(ExplainTest, TensorsThatGoToAndFroAreNoCycle) {
  Add(kA, R"(part { step_id: 7 age_ms: 5000
                    wait { node: 'r1' op: '_Recv' age_ms: 4500 tensor: 'take:0'
                           from_device: '$B/device:CPU:0' } })");
  Add(kB, absl::StrReplaceAll(kDequeues, {{"wait { node", R"(
      wait { node: 'r2' op: '_Recv' age_ms: 4500 tensor: 'sum:0' from_device: '$A/device:CPU:0' }
      wait { node)"}}));
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("Nobody fills")));
}

// Each of the two queues is filled with a tensor that comes back from another task.
TEST_F(ExplainTest, ACycleMayLeadThroughOtherTasks) {
  const auto part = [](int step, const char* take, const char* put) {
    return absl::StrReplaceAll(
        R"(part { step_id: $step
             wait { node: 'take' kind: TAKE age_ms: 3000 resource $Q($take) }
             wait { node: 'recv' age_ms: 3000 tensor: 't' from_device: '$A/device:CPU:0' }
             use { node: 'take' kind: TAKE state: WAITS resource $Q($take) }
             use { node: 'put' kind: PUT state: HELD_UP behind: 'recv' resource $Q($put) } })",
        {{"$step", absl::StrCat(step)}, {"$take", take}, {"$put", put}});
  };
  Add(kB, part(7, "right", "left") + part(8, "left", "right"));
  Add(kA, R"(
      part { step_id: 7 wait { node: 'r' age_ms: 3000 from_device: '$B/device:CPU:0' } }
      part { step_id: 8 wait { node: 'r' age_ms: 3000 from_device: '$B/device:CPU:0' } })");
  EXPECT_THAT(Findings(), ElementsAre(AllOf(HasSubstr("in a cycle"), HasSubstr("'left'"),
                                            HasSubstr("'right'"))));
}

TEST_F(ExplainTest, ATaskThatDoesNotAnswer) {
  Add(kA, R"(session { handle: 's' step { step_id: 7 age_ms: 5000 running_in: '$B' } }
             new_session { age_ms: 9000 task: '$B' }
             peer { task: '$B' heartbeats_missed: 2 silent_ms: 4100 })");
  AddSilent(kB);
  EXPECT_THAT(
      Findings(),
      ElementsAre(
          AllOf(HasSubstr("/job:ps/task:0 at host:2 does not answer (Connection refused)"),
                HasSubstr("last heard 4 s ago"), HasSubstr("1 step waits for it")),
          HasSubstr("1 new session of /job:worker/task:0 waits, for 9 s, for /job:ps/task:0")));
}

// Task A gets no answers to its heartbeats from B, and a new session on A waits for B; but both
// tasks have sent their reports.
TEST_F(ExplainTest, TasksThatCannotReachEachOther) {
  Add(kA, R"(new_session { age_ms: 9000 task: '$B'
                           unanswered { task: '$B' error { message: 'Deadline Exceeded' } } }
             peer { task: '$B' incarnation: 5 heartbeats_missed: 2 silent_ms: 4100 })");
  Add(kB, "self { task: '$B' incarnation: 5 }");
  EXPECT_THAT(
      Findings(),
      ElementsAre(AllOf(HasSubstr("/job:worker/task:0 cannot reach /job:ps/task:0, for 9 s"),
                        HasSubstr("both of them have answered"), HasSubstr("heartbeats")),
                  HasSubstr("1 new session of /job:worker/task:0 waits, for 9 s, for "
                            "/job:ps/task:0")));
  cluster_.mutable_task(1)->mutable_report()->add_peer()->CopyFrom(
      ReportOf("peer { task: '$A' heartbeats_missed: 2 silent_ms: 4100 }").peer(0));
  EXPECT_THAT(Findings()[0],
              HasSubstr("/job:ps/task:0 and /job:worker/task:0 cannot reach each other, for 9 s"));
}

TEST_F(ExplainTest, ATaskThatOnlyTheOperatorReaches) {
  cluster_.set_asked(kA);
  Add(kA, "");
  Add(kB, "");
  cluster_.mutable_task(1)->mutable_unreached_by_asked()->set_message("Deadline Exceeded");
  EXPECT_THAT(Findings(),
              ElementsAre(HasSubstr("/job:worker/task:0 cannot reach /job:ps/task:0, although")));
}

TEST_F(ExplainTest, ATensorThatWasNotAskedFor) {
  Add(kA, R"(part { step_id: 7 age_ms: 5000
                    wait { node: 'r' op: '_Recv' age_ms: 4500 tensor: 'sum:0'
                           from_device: '$B/device:CPU:0' } })");
  Add(kB, "part { step_id: 7 age_ms: 5000 unasked_by: '$A' }");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("'sum:0' of step 7 is ready, but was not asked")));
}

// The unanswered heartbeats were meant for an incarnation of B before its restart.
TEST_F(ExplainTest, ARestartedTaskIsNotCutOff) {
  Add(kA, "peer { task: '$B' incarnation: 5 heartbeats_missed: 3 silent_ms: 6000 }");
  Add(kB, "self { task: '$B' incarnation: 6 }");
  EXPECT_THAT(Findings(), IsEmpty());
}

constexpr char kAwaited[] = R"(
    session { handle: 's' }
    awaited_variable { name $Q(w) age_ms: 900 first_age_ms: 12000 times: 12 }
    awaited_variable { name $Q(b) age_ms: 900 first_age_ms: 12000 times: 12 }
    awaited_variable { name $Q(once) age_ms: 900 first_age_ms: 900 times: 1 }
    awaited_variable { name $Q(long_ago) age_ms: 50000 first_age_ms: 90000 times: 9 })";

TEST_F(ExplainTest, VariablesThatNobodyInitialises) {
  Add(kA, "");
  Add(kB, kAwaited);
  EXPECT_THAT(Findings(),
              ElementsAre(AllOf(
                  HasSubstr("Nobody has initialised the variables 'w', 'b' on /job:ps/task:0"),
                  HasSubstr("for 12 s: they have asked 12 times, last 900 ms ago"),
                  HasSubstr("the chief, in most programs /job:worker/task:0, has no session"),
                  Not(HasSubstr("long_ago")))));
  cluster_.mutable_task(0)->mutable_report()->add_session()->set_handle("c");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("has a session, so its program may lack")));
}

TEST_F(ExplainTest, TheChiefDoesNotAnswer) {
  AddSilent(kA);
  Add(kB, kAwaited);
  EXPECT_THAT(Findings()[1], HasSubstr("/job:worker/task:0, does not answer"));
}

TEST_F(ExplainTest, ACheckpointThatCannotBeWritten) {
  const char* const failed = R"(
      failed_save { path: '/full/model.ckpt-20' step: 20 node: 'save/SaveV2' age_ms: 3000
                    first_age_ms: 33000 times: 4 error { message: 'No space left on device' } })";
  Add(kB, failed);
  EXPECT_THAT(Findings(), IsEmpty());  // no session is left that would save
  Add(kA, "session { handle: 's' }");
  EXPECT_THAT(
      Findings(),
      ElementsAre(AllOf(
          HasSubstr(
              "Checkpoint /full/model.ckpt-20 could not be written by /job:ps/task:0, 3 s ago"),
          HasSubstr("'save/SaveV2' failed with No space left on device"),
          HasSubstr("failure number 4 in a row there, for 33 s"))));
}

TEST_F(ExplainTest, ATaskThatHasLostItsPart) {
  Add(kA, "session { handle: 's' step { step_id: 7 age_ms: 5000 running_in: '$B' } }");
  Add(kB, "");
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("answers but does not run it")));
}

TEST_F(ExplainTest, AComputationWithoutAnEnd) {
  Add(kA, R"(part { step_id: 7 age_ms: 60000 computing: true
                    loop { name: 'while' iteration: 12345 } })");
  EXPECT_THAT(
      Findings(),
      ElementsAre(HasSubstr(
          "step 7 computes in /job:worker/task:0, for 60 s, and waits for nothing there; it is in "
          "iteration 12345 of loop 'while'")));
}

TEST_F(ExplainTest, WhatIsYoungIsNotLookedAt) {
  Add(kB, absl::StrReplaceAll(kDequeues, {{"4000", "400"}, {"5000", "500"}}));
  EXPECT_THAT(Findings(), IsEmpty());
  EXPECT_THAT(Explain(cluster_).steps, IsEmpty());
  EXPECT_THAT(Explain(cluster_, 300).findings, ElementsAre(HasSubstr("Nobody fills")));
}

TEST_F(ExplainTest, ASecondLookTellsHowOldAStepIs) {
  Add(kA, "part { step_id: 7 age_ms: -1 computing: true }");
  EXPECT_THAT(Findings(), IsEmpty());
  EXPECT_TRUE(AgesAreMissing(cluster_));
  const wire::ClusterReport before = cluster_;
  *cluster_.mutable_task(0)->mutable_report()->add_part() =
      ReportOf("part { step_id: 8 age_ms: -1 computing: true }").part(0);
  LearnAges(before, 1'000, &cluster_);
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("step 7 computes")));
}

TEST_F(ExplainTest, NotAllOfManyStepsAreDescribed) {
  for (int i = 0; i < 5; ++i) {
    *cluster_.add_task()->mutable_report() =
        ReportOf(absl::StrCat("part { step_id: ", i + 1, " age_ms: 2000 computing: true }"));
  }
  const Explanation explanation = Explain(cluster_, 1000, 2);
  EXPECT_EQ(explanation.steps.size(), 2u);
  EXPECT_THAT(explanation.summary, HasSubstr("5 steps run, 5 for longer than 1 s"));
}

}  // namespace
}  // namespace penstock
