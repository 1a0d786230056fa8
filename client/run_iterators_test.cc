// SPDX-License-Identifier: Apache-2.0
//
// Tests trainings that read datasets: their ends, and how they resume.
#include "client/run_iterators.h"

#include <memory>
#include <optional>

#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/testing/resumed_training.h"
#include "client/training.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

struct InputOptions {
  bool once = false;
  int64_t max_steps = 0;
  std::string checkpoint_dir = "";
};

// Trains on batches of four of the dataset's numbers. With a checkpoint directory, resumes at the
// checkpoint and at its position in the input.
Status TrainOn(Program& program, const Dataset& dataset, WatchFirst& watch,
               const InputOptions& options = {}) {
  const Iterator iterator(dataset.Batch(4, {.drop_remainder = true}));
  const Output batch = iterator.GetNext()[0];
  const Output loss = InverseLoss(program, batch);
  const Output first =
      Combined(program, batch, Tensor::Vector<int64_t>({1'000'000, 10'000, 100, 1}));
  GradientDescent optimizer(0.0001);
  std::optional<ExactlyOnce> once;
  if (options.once) once.emplace(program);
  const Output train = once ? once->Apply(optimizer, optimizer.ComputeGradients(program, loss))
                            : optimizer.Minimize(program, loss);
  const bool resumes = options.once || !options.checkpoint_dir.empty();
  RunIterators input({iterator}, resumes ? batch : Output(), once ? &*once : nullptr);
  TrainingLoop loop(
      program, {.train = train, .measures = {{"first", first}}, .once = once ? &*once : nullptr},
      QuietTraining(options.max_steps, options.checkpoint_dir));
  loop.AddHook(&input);
  loop.AddHook(&watch);
  return loop.Run();
}

Dataset ShuffledRounds(Program& program) {
  return Dataset::Range(program, 0, 20)
      .Shuffle(8, 3)
      .Repeat(3)
      .ParallelMap([](const Outputs& x) { return Outputs{x[0] + 10}; })
      .Prefetch();
}

TEST(RunIterators, TheEndOfTheDatasetEndsTheTraining) {
  for (const bool once : {false, true}) {
    Program program;
    WatchFirst watch;
    const Status status = TrainOn(program, ShuffledRounds(program), watch, {.once = once});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(watch.seen.size(), 15u);
  }
}

TEST(RunIterators, TheLastStepEndsTheTraining) {
  Program program;
  WatchFirst watch;
  const Status status = TrainOn(program, ShuffledRounds(program).Repeat(), watch, {.max_steps = 7});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(watch.seen.size(), 7u);
}

TEST(RunIterators, AnErrorOfTheInputEndsTheTraining) {
  Program program;
  WatchFirst watch;
  const Dataset numbers =
      Dataset::TFRecords(program, {"/nowhere/to/be/found"}).Map([](const Outputs& record) {
        return Outputs{Call("StringToNumber", {record[0]}, {{"out_type", DType::kInt64}})};
      });
  const Status status = TrainOn(program, numbers, watch);
  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/to/be/found"));
  EXPECT_TRUE(watch.seen.empty());
}

class ResumedDataset : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(RunIterators, ResumedDataset, testing::Bool(),
                         [](const auto& info) { return info.param ? "Once" : "ByGlobalStep"; });

TEST_P(ResumedDataset, GoesOnInItsInput) {
  ExpectGoesOnInItsInput("dataset", [](WatchFirst& watch, const std::string& directory) {
    Program program;
    return TrainOn(program, ShuffledRounds(program), watch,
                   {.once = GetParam(), .checkpoint_dir = directory});
  });
}

// An input that has fewer elements than earlier steps took is an error, not the training's end.
TEST_P(ResumedDataset, NeedsTheElementsOfEarlierSteps) {
  const std::string directory = StrCat(testing::TempDir(), "/shorter_", Env::Real().RandomU64());
  const InputOptions options = {.once = GetParam(), .checkpoint_dir = directory};
  {
    Program program;
    WatchFirst watch(/*dies_after=*/6);
    EXPECT_FALSE(TrainOn(program, ShuffledRounds(program), watch, options).ok());
  }
  Program program;
  WatchFirst watch;
  const Status status = TrainOn(program, Dataset::Range(program, 0, 8), watch, options);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("it ends after 2 of the 4 elements that earlier steps took"));
  EXPECT_TRUE(watch.seen.empty());
}

TEST(RunIterators, WhatIsLeftToChanceCannotBeResumed) {
  for (const bool once : {false, true}) {
    Program program;
    WatchFirst watch;
    const std::string directory = StrCat(testing::TempDir(), "/chance_", Env::Real().RandomU64());
    const Status status = TrainOn(program, Dataset::Range(program, 0, 40).Shuffle(10), watch,
                                  {.once = once, .checkpoint_dir = directory});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the input cannot be resumed"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("has no seed"));
    EXPECT_TRUE(watch.seen.empty());
  }
}

TEST(RunIterators, ATrainingThatIsToldToEndDropsNoMoreElements) {
  Program program;
  const Iterator iterator(Dataset::Range(program, 0, 100));
  RunIterators input({iterator}, iterator.GetNext()[0]);
  const auto session = Session::New(program);
  int asked = 0;
  const Status status = input.SessionBegins(
      {.session = **session, .global_step = 8, .stopping = [&] { return ++asked == 3; }});
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 of the 8 elements"));
}

TEST(RunIterators, ACancellationEndsTheDropping) {
  Program program;
  // No element passes, so the first one is never dropped.
  const Iterator iterator(Dataset::Range(program, 0, int64_t{1} << 60).Filter([](const Outputs& x) {
    return Less(x[0], Constant(*x[0].sink, Tensor::Scalar<int64_t>(0)));
  }));
  RunIterators input({iterator}, iterator.GetNext()[0]);
  const auto session = Session::New(program);
  Cancellation cancellation;
  std::unique_ptr<Thread> thread;
  // Called when the iterator is initialised, immediately before the first element is taken.
  const auto stopping = [&] {
    thread = Scheduler::Real().StartThread("cancels", [&] {
      Env::Real().SleepForNanos(100'000'000);
      cancellation.Cancel(Cancelled("told to end"));
    });
    return false;
  };
  const Status status = input.SessionBegins({.session = **session,
                                             .global_step = 8,
                                             .run = {.cancellation = &cancellation},
                                             .stopping = stopping});
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
}

TEST(RunIterators, ExactlyOnceNeedsToKnowWhatIsTaken) {
  Program program;
  const ExactlyOnce once(program);
  RunIterators input({Iterator(Dataset::Range(program, 0, 3))}, {}, &once);
  const auto session = Session::New(program);
  EXPECT_EQ(input.SessionBegins({**session}).code(), StatusCode::kInvalidArgument);
}

// The caller initialises its iterators itself, or takes elements from something else.
TEST(RunIterators, ExactlyOnceDropsWhatIsTakenWithoutIterators) {
  Program program;
  const Variable w(program, "w", {}, Zeros());
  const Variable dropped(program, "dropped", {}, Zeros(), {.trainable = false});
  const Output taken = dropped.AssignAdd(OnesLike(dropped));
  GradientDescent optimizer(1);
  ExactlyOnce once(program);
  const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, -w));
  const Output init = program.Initialize(program.variables());
  const auto session = Session::New(program);
  ASSERT_EQ((*session)->Execute(init), OkStatus());
  RunIterators input({}, taken, &once);
  ASSERT_EQ(input.SessionBegins({**session}), OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ((*session)->Execute(train), OkStatus());
  EXPECT_EQ((*session)->Fetch(dropped)->scalar<float>(), 0);
  ASSERT_EQ(input.SessionBegins({**session}), OkStatus());
  EXPECT_EQ((*session)->Fetch(dropped)->scalar<float>(), 3);
}

// Two workers of a cluster each read half of the numbers. One of them is started again in the
// middle. The variable on the parameter server gets each number exactly once.
TEST(RunIterators, WorkersThatAreStartedAgain) {
  constexpr int64_t kCount = 100;
  TestCluster cluster({{"ps", 1}, {"worker", 2}});
  double sum = 0;
  const auto run = [&](int worker, int64_t dies_after) {
    Program program;
    const auto scope = program.DeviceFunctionScope(
        ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = StrCat("/job:worker/task:", worker)}));
    const Variable total(program, "total", {}, Zeros());
    const Variable other(program, "other", {kCount}, Zeros());
    const Iterator iterator(Dataset::Range(program, 0, kCount)
                                .Shard(2, worker)
                                .Shuffle(10, 5)
                                .Map([](const Outputs& x) { return Outputs{x[0] + 1}; })
                                .Prefetch());
    const Output number = iterator.GetNext()[0];
    ExactlyOnce once(program, {.workers = 2, .worker = worker});
    GradientDescent optimizer(1);
    const Output axis = Constant(program, Tensor::Scalar<int32_t>(0));
    const Output rows = Reshape(number - 1, Constant(program, Tensor::Vector<int32_t>({1})));
    const Output loss =
        -(Cast(number, DType::kFloat) * total) - Sum(Gather(other, rows, axis), axis);
    const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, loss));
    const Output first = Cast(number, DType::kFloat);
    WatchFirst watch(dies_after);
    RunIterators input({iterator}, number, &once);
    TrainingLoop loop(program, {.train = train, .measures = {{"first", first}}, .once = &once},
                      {.target = cluster.target(),
                       .is_chief = worker == 0,
                       .stop_on_signals = false,
                       .say = [](const std::string&) {}});
    loop.AddHook(&input);
    loop.AddHook(&watch);
    const Status status = loop.Run();
    EXPECT_EQ(status.ok(), dies_after == 0) << status;
    if (!status.ok()) return;
    const auto values = loop.session().Run({total, other});
    ASSERT_TRUE(values.ok()) << values.status();
    sum = (*values)[0].scalar<float>();
    for (const float times : (*values)[1].flat<float>()) EXPECT_LE(times, 1);
  };
  run(/*worker=*/0,
      /*dies_after=*/0);  // the chief initialises the variables, and reads its half of the numbers
  EXPECT_EQ(sum, 50.0 * 50.0);  // 1 + 3 + ... + 99
  run(/*worker=*/1, /*dies_after=*/50 + 20);
  run(/*worker=*/1, /*dies_after=*/0);
  EXPECT_EQ(sum, kCount * (kCount + 1) / 2.0);
}

}  // namespace
}  // namespace penstock::client
