// SPDX-License-Identifier: Apache-2.0
#include "client/run_queue_runners.h"

#include <initializer_list>

#include "client/input.h"
#include "client/optimizers.h"
#include "client/testing/resumed_training.h"
#include "client/training.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

struct Options {
  int64_t max_steps = 0;
  std::string checkpoint_dir = "";
};

// Trains on batches of four numbers. With a checkpoint directory, resumes at the checkpoint and at
// its position in the input.
Status Train(Program& program, const QueueRunners& runners, Output batch, WatchFirst& watch,
             const Options& options = {}) {
  const Output first = Combined(program, batch, Tensor::Vector<int32_t>({1000, 100, 10, 1}));
  const Output train = GradientDescent(0.001).Minimize(program, InverseLoss(program, batch));
  RunQueueRunners queues(runners, options.checkpoint_dir.empty() ? Output() : batch);
  TrainingLoop loop(program, {.train = train, .measures = {{"first", first}}},
                    QuietTraining(options.max_steps, options.checkpoint_dir));
  loop.AddHook(&queues);
  loop.AddHook(&watch);
  return loop.Run();
}

Output Numbers(QueueRunners& runners, int64_t epochs) {
  const Output queue = RangeInputProducer(runners, 10, {.num_epochs = epochs, .seed = 1});
  return Call("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kInt32}}});
}

TEST(RunQueueRunners, TheEndOfTheInputEndsTheTraining) {
  Program program;
  QueueRunners runners(program);
  const Output batch = Batch(runners, {Numbers(runners, 6)}, 4)[0];
  WatchFirst watch;
  const Status status = Train(program, runners, batch, watch);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(watch.seen.size(), 15u);
}

TEST(RunQueueRunners, TheLastStepEndsTheRunners) {
  Program program;
  QueueRunners runners(program);
  const Output batch = Batch(runners, {Numbers(runners, 0)}, 4)[0];
  WatchFirst watch;
  const Status status = Train(program, runners, batch, watch, {.max_steps = 7});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(watch.seen.size(), 7u);
}

TEST(RunQueueRunners, TheErrorOfARunnerIsTheErrorOfTheTraining) {
  Program program;
  QueueRunners runners(program);
  const Output files = StringInputProducer(runners, {"/nowhere/to/be/found"});
  const Output reader = CallIn(program, "TextLineReaderV2", {});
  const Output line = ReadRecord(reader, files).value;
  const Output number =
      Cast(Equal(line, Constant(program, Tensor::Scalar<std::string>("yes"))), DType::kInt32);
  WatchFirst watch;
  const Status status = Train(program, runners, Batch(runners, {number}, 4)[0], watch);
  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/to/be/found"));
  EXPECT_TRUE(watch.seen.empty());
}

Output Batches(QueueRunners& runners, bool shuffled) {
  const Output number = Numbers(runners, 6);
  if (!shuffled) return Batch(runners, {number}, 4)[0];
  return ShuffleBatch(runners, {number}, 4,
                      {.capacity = 15, .min_after_dequeue = 7, .seed = 3, .repeatable = true})[0];
}

class Resumed : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(RunQueueRunners, Resumed, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shuffled" : "InOrder"; });

TEST_P(Resumed, GoesOnInItsInput) {
  ExpectGoesOnInItsInput("resumed", [](WatchFirst& watch, const std::string& directory) {
    Program program;
    QueueRunners runners(program);
    const Output batch = Batches(runners, GetParam());
    return Train(program, runners, batch, watch, {.checkpoint_dir = directory});
  });
}

// An input that has fewer batches than earlier steps took is an error, not the training's end.
TEST(RunQueueRunners, NeedsTheBatchesOfEarlierSteps) {
  const std::string directory = StrCat(testing::TempDir(), "/shorter_", Env::Real().RandomU64());
  const auto train = [&](int64_t epochs, WatchFirst& watch) {
    Program program;
    QueueRunners runners(program);
    const Output batch = Batch(runners, {Numbers(runners, epochs)}, 4)[0];
    return Train(program, runners, batch, watch, {.checkpoint_dir = directory});
  };
  WatchFirst first(/*dies_after=*/6), second;
  EXPECT_FALSE(train(/*epochs=*/6, first).ok());
  const Status status = train(/*epochs=*/1, second);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("it ends after 2 of the 4 elements that earlier steps took"));
  EXPECT_TRUE(second.seen.empty());
}

// Tells the loop to end as soon as there is a session.
class EndAtOnce : public TrainingHook {
 public:
  explicit EndAtOnce(TrainingLoop& loop) : loop_(loop) {}
  Status SessionReady(Session&, int64_t) override {
    loop_.RequestStop();
    return OkStatus();
  }

 private:
  TrainingLoop& loop_;
};

// The hook that drops the batches of earlier steps ends, and the hook after it never begins.
TEST(RunQueueRunners, ATrainingEndsWhileBatchesAreDropped) {
  const std::string directory = StrCat(testing::TempDir(), "/dropped_", Env::Real().RandomU64());
  {
    Program program;
    QueueRunners runners(program);
    const Output batch = Batch(runners, {Numbers(runners, 6)}, 4)[0];
    WatchFirst watch(/*dies_after=*/6);
    EXPECT_FALSE(Train(program, runners, batch, watch, {.checkpoint_dir = directory}).ok());
  }
  Program program;
  QueueRunners runners(program), others(program);
  const Output batch = Batch(runners, {Numbers(runners, 6)}, 4)[0];
  const Output first = Combined(program, batch, Tensor::Vector<int32_t>({1000, 100, 10, 1}));
  const Output train = GradientDescent(0.001).Minimize(program, InverseLoss(program, batch));
  TrainingLoop loop(program, {.train = train, .measures = {{"first", first}}},
                    QuietTraining(0, directory));
  EndAtOnce end(loop);
  RunQueueRunners drops(runners, batch), never_begins(others);
  WatchFirst watch;
  for (TrainingHook* hook :
       std::initializer_list<TrainingHook*>{&end, &drops, &never_begins, &watch}) {
    loop.AddHook(hook);
  }
  const Status status = loop.Run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(loop.global_step(), 4);
  EXPECT_TRUE(watch.seen.empty());
}

TEST(RunQueueRunners, WhatIsLeftToChanceCannotBeResumed) {
  const struct {
    std::function<Output(QueueRunners&)> batch;
    std::string error;
  } kCases[] = {
      {[](QueueRunners& r) { return Batch(r, {Numbers(r, 6)}, 4, {.threads = 2})[0]; },
       "'batch/QueueEnqueueV2' has 2 threads for each of 1 enqueue ops"},
      {[](QueueRunners& r) {
         return ShuffleBatch(r, {Numbers(r, 6)}, 4, {.capacity = 9, .seed = 3})[0];
       },
       "(RandomShuffleQueueV2) is not repeatable"},
      {[](QueueRunners& r) {
         const Output queue = RangeInputProducer(r, 10);
         return Call("QueueDequeueManyV2", {queue, Constant(r.program(), Tensor::Scalar(4))},
                     {{"component_types", std::vector<DType>{DType::kInt32}}});
       },
       "(RandomShuffle) has no seed"},
      {[](QueueRunners& r) {
         const Output number = Numbers(r, 6);
         return BucketBySequenceLength(r, number, {number}, 4, {5}).lengths;
       },
       "has 1 threads for each of 2 enqueue ops"},
  };
  for (const auto& c : kCases) {
    Program program;
    QueueRunners runners(program);
    const Output batch = c.batch(runners);
    const std::string directory = StrCat(testing::TempDir(), "/chance_", Env::Real().RandomU64());
    WatchFirst watch;
    const Status status = Train(program, runners, batch, watch, {.checkpoint_dir = directory});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the input cannot be resumed"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
    EXPECT_TRUE(watch.seen.empty());
  }
}

}  // namespace
}  // namespace penstock::client
