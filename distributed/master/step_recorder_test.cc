// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/step_recorder.h"

#include "core/runtime/testing/sim_test.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::HasSubstr;

RecordedStep StepOf(int rows, const std::string& session = "s") {
  RecordedStep step{.session = session};
  step.devices.push_back({.device = "d", .nodes = std::vector<NodeStats>(rows)});
  return step;
}

class StepRecorderTest : public SimTest {
 protected:
  int64_t In(int64_t ms) { return env_.NowNanos() + ms * 1'000'000; }

  StepRecorder recorder_{scheduler_};
};

TEST_F(StepRecorderTest, RecordsTheStepsThatEndFirst) {
  Simulate([&] {
    EXPECT_EQ(recorder_.Take(), nullptr) << "nobody records";
    const auto recording = *recorder_.Begin({.steps = 2});
    const auto slow = recorder_.Take();
    ASSERT_EQ(slow, recording);
    for (const char* const session : {"a", "b"}) {
      EXPECT_FALSE(recording->Wait(In(10)));
      const auto taken = recorder_.Take();
      ASSERT_NE(taken, nullptr);
      taken->Add(StepOf(3, session));
    }
    EXPECT_TRUE(recording->Wait(In(10)));
    EXPECT_EQ(recorder_.Take(), nullptr) << "it has what it wants";
    EXPECT_EQ(recording->under_way(), 1);
    slow->Add(StepOf(3, "slow"));
    EXPECT_EQ(recording->begun(), 3);
    EXPECT_EQ(recording->cut(), "");
    const auto steps = recording->TakeSteps();
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].session, "a");
    EXPECT_EQ(steps[1].session, "b");
    recorder_.End(recording);
  });
}

TEST_F(StepRecorderTest, ItsWaiterWakesWhenTheLastStepIsThere) {
  Simulate([&] {
    const auto recording = *recorder_.Begin({.steps = 1});
    const auto thread = scheduler_.StartThread("step", [&] {
      Pass(5);
      recorder_.Take()->Add(StepOf(1));
    });
    const int64_t begun_ms = NowMs();
    EXPECT_TRUE(recording->Wait(In(1'000)));
    EXPECT_EQ(NowMs() - begun_ms, 5);
    recorder_.End(recording);
  });
}

TEST_F(StepRecorderTest, AFailedStepIsNotListed) {
  Simulate([&] {
    const auto recording = *recorder_.Begin({.steps = 1});
    recorder_.Take()->Drop();
    EXPECT_EQ(recording->under_way(), 0);
    EXPECT_FALSE(recording->Wait(In(1)));
    recorder_.Take()->Add(StepOf(1));
    EXPECT_TRUE(recording->Wait(In(1)));
    recorder_.End(recording);
  });
}

TEST_F(StepRecorderTest, MemoryIsBounded) {
  Simulate([&] {
    auto recording = *recorder_.Begin({.steps = 10, .rows = 5});
    recorder_.Take()->Add(StepOf(3));
    recorder_.Take()->Add(StepOf(3));
    EXPECT_TRUE(recording->Wait(In(1)));
    EXPECT_EQ(recording->cut(), "more than 5 nodes ran");
    EXPECT_EQ(recording->TakeSteps().size(), 1u);
    recorder_.End(recording);

    recording = *recorder_.Begin({.steps = 10, .bytes = 1 << 20});
    RecordedStep large = StepOf(1);
    large.devices[0].nodes[0].op.resize(2 << 20);
    recorder_.Take()->Add(std::move(large));
    EXPECT_EQ(recording->cut(), "the record takes more than 1 MiB");
    recorder_.End(recording);

    recording = *recorder_.Begin({.steps = 10});
    for (int64_t i = 0; i < StepRecorder::kUnderWayMax; ++i) ASSERT_NE(recorder_.Take(), nullptr);
    EXPECT_EQ(recorder_.Take(), nullptr) << "so many are traced at a time";
    recording->Drop();
    EXPECT_NE(recorder_.Take(), nullptr);
    recorder_.End(recording);
  });
}

TEST_F(StepRecorderTest, OneRecordingAtATime) {
  Simulate([&] {
    const auto recording = *recorder_.Begin({.steps = 1});
    EXPECT_TRUE(absl::IsResourceExhausted(recorder_.Begin({.steps = 1}).status()));
    recording->Cancel();
    EXPECT_TRUE(recording->Wait(In(1)));
    EXPECT_THAT(recording->cut(), HasSubstr("cancelled"));
    recorder_.End(recording);
    EXPECT_EQ(recorder_.Take(), nullptr);
    const auto next = recorder_.Begin({.steps = 1});
    EXPECT_TRUE(next.ok());
    recorder_.End(recording);
    EXPECT_NE(recorder_.Take(), nullptr) << "the end of an earlier one changes nothing";
    recorder_.End(*next);
    for (const int64_t steps : {0, 1'001}) {
      EXPECT_THAT(recorder_.Begin({.steps = steps}).status().message(),
                  HasSubstr("expected 1 to 1000"));
    }
  });
}

}  // namespace
}  // namespace penstock
