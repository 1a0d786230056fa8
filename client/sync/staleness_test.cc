// SPDX-License-Identifier: Apache-2.0
#include "client/sync/staleness.h"

#include "client/summary/testing/event_files.h"
#include "client/training.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

struct Counter {
  Counter()
      : train(program.GlobalStep().AssignAdd(Constant(program, Tensor::Scalar<int64_t>(1)))),
        staleness(program, train) {}
  Program program;
  Output train;
  Staleness staleness;
};

TEST(Staleness, OfALoneWorkerIsZero) {
  Counter counter;
  TrainingLoop loop(
      counter.program,
      {.train = counter.train, .measures = {{Staleness::kMeasure, counter.staleness.measure()}}},
      {.max_steps = 10, .stop_on_signals = false});
  loop.AddHook(&counter.staleness);
  const Status status = loop.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(counter.staleness.counts(), (std::map<int64_t, int64_t>{{0, 10}}));
  EXPECT_EQ(counter.staleness.Describe(), "staleness of 10 updates: mean 0.0; 0: 100 %");
}

TEST(Staleness, CountsTheUpdatesOfOthers) {
  Counter counter;
  bool stop = false;
  EXPECT_EQ(counter.staleness.Describe(), "staleness: no updates");
  for (const double value : {0, 1, 1, 2, 3, 4, 7, 9}) {
    const StepResult result{.measures = {{Staleness::kMeasure, value}}};
    ASSERT_TRUE(counter.staleness.AfterStep(result, &stop).ok());
  }
  EXPECT_EQ(counter.staleness.Describe(),
            "staleness of 8 updates: mean 3.4; 0: 12 %, 1: 25 %, 2-3: 25 %, 4-7: 25 %, 8-15: 12 %");
  EXPECT_EQ(counter.staleness.AfterStep({}, &stop).code(), StatusCode::kFailedPrecondition);
}

TEST(Staleness, HistogramsAreOfTheStepsSinceTheLastOne) {
  const std::string folder = NewTestFolder();
  auto writer = SummaryWriter::Create(folder);
  ASSERT_TRUE(writer.ok()) << writer.status();
  Counter counter;
  counter.staleness.WriteHistograms(**writer, 4);
  TrainingLoop loop(
      counter.program,
      {.train = counter.train, .measures = {{Staleness::kMeasure, counter.staleness.measure()}}},
      {.max_steps = 10, .stop_on_signals = false});
  loop.AddHook(&counter.staleness);
  ASSERT_TRUE(loop.Run().ok());
  ASSERT_TRUE((*writer)->Close().ok());
  const auto events = ReadEvents(folder);
  EXPECT_EQ(StepsWith(events, Staleness::kHistogramTag), (std::vector<int64_t>{4, 8, 10}));
  EXPECT_EQ(events.back().summary().value(0).histo().num(), 2);
}

}  // namespace
}  // namespace penstock::client
