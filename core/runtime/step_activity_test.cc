// SPDX-License-Identifier: Apache-2.0
//
// Tests how an executor describes the steps that it runs.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/runtime/executor.h"
#include "core/runtime/testing/run_step.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

Tensor Number(int64_t value) { return Tensor::Scalar(value); }

class StepActivityTest : public testing::TestWithParam<RunMode> {
 protected:
  TestTask task_;
};
INSTANTIATE_TEST_SUITE_P(How, StepActivityTest, testing::Values(RunMode::kRun, RunMode::kRunAsync),
                         [](const auto& info) {
                           return info.param == RunMode::kRun ? "Run" : "RunAsync";
                         });

TEST_P(StepActivityTest, WhatAStepWaitsForCanBeAsked) {
  TestGraph g;
  g.Add("TestStall", {}, {{"N", 0}}, {}, "queue/dequeue");
  const auto executor = task_.Make(g.Take());
  EXPECT_TRUE(executor->Activities().empty());
  TestStep step;
  const int64_t start = Env::Real().NowNanos();
  Status status;
  std::thread runner([&] { status = RunStep(*executor, step.Args(), GetParam()); });
  std::vector<StepActivity> activities;
  while (activities.empty() || activities[0].waits.empty() || activities[0].computing) {
    activities = executor->Activities();
  }
  EXPECT_EQ(activities[0].step_id, 7);
  EXPECT_TRUE(activities[0].shared);
  ASSERT_EQ(activities[0].waits.size(), 1u);
  EXPECT_EQ(activities[0].waits[0].node->name(), "queue/dequeue");
  EXPECT_EQ(activities[0].waits[0].node, executor->graph().FindNode("queue/dequeue"));
  EXPECT_GE(activities[0].waits[0].since_ns, start);
  EXPECT_LE(activities[0].waits[0].since_ns, Env::Real().NowNanos());
  step.cancellation.Cancel(Cancelled("enough"));
  runner.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_TRUE(executor->Activities().empty()) << "the step has ended";
}

// Calls of Activities, at any moment, do not disturb the steps or their threads.
TEST_P(StepActivityTest, StepsGoOnWhileTheyAreLookedAt) {
  TestGraph g;
  g.Fetch(g.AddSum("TestAsync", {g.AddSum("TestAsync", {g.Feed(0)})}), 0);
  const auto executor = task_.Make(g.Take());
  std::atomic<bool> done{false};
  std::thread looker([&] {
    while (!done) {
      for (const StepActivity& activity : executor->Activities()) EXPECT_EQ(activity.step_id, 7);
    }
  });
  for (int i = 0; i < 2'000; ++i) {
    TestStep step(1, {Number(i)});
    ASSERT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
    EXPECT_EQ(step.fetches[0].scalar<int64_t>(), i);
  }
  done = true;
  looker.join();
}

}  // namespace
}  // namespace penstock
