// SPDX-License-Identifier: Apache-2.0
//
// Runs random programs with branches and loops: the executor must compute the same results as an
// interpreter. The message of a failure has the seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "core/runtime/testing/random_program.h"
#include "core/runtime/testing/run_step.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

std::vector<int64_t> Numbers(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> numbers;
  for (const Tensor& t : tensors) numbers.push_back(t.valid() ? t.scalar<int64_t>() : -1);
  return numbers;
}

void RunProgram(TestTask& task, uint32_t seed, RandomProgram::Kinds kinds) {
  SCOPED_TRACE(StrCat("seed ", seed));
  RandomProgram program(seed, kinds);
  const auto executor = task.Make(program.Build());
  for (int run = 0; run < 4; ++run) {
    const std::vector<int64_t> feeds = {run, static_cast<int64_t>(seed) * 7 + run / 2};
    TestStep step(program.num_fetches(), {Tensor::Scalar(feeds[0]), Tensor::Scalar(feeds[1])});
    StepStatsCollector stats;
    if (run == 1) step.stats = &stats;
    const Status status =
        RunStep(*executor, step.Args(), run % 2 == 1 ? RunMode::kRunAsync : RunMode::kRun);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(Numbers(step.fetches), program.Expected(feeds));
  }
}

class ExecutorRandomFlowTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ExecutorRandomFlowTest, testing::Values(1, 2, 4));

TEST_P(ExecutorRandomFlowTest, CheapNodes) {
  TestTask task(GetParam());
  for (uint32_t seed = 0; seed < 300; ++seed) RunProgram(task, seed, {});
}

TEST_P(ExecutorRandomFlowTest, ExpensiveAndAsyncNodes) {
  TestTask task(GetParam());
  for (uint32_t seed = 1000; seed < 1150; ++seed) {
    RunProgram(task, seed, {.expensive = 30, .async = 30});
  }
}

// Cancels the step at a random moment: it must end with all results or with the cancellation, and
// the executor must then be usable again.
TEST_P(ExecutorRandomFlowTest, Cancellations) {
  TestTask task(GetParam());
  int cancelled = 0;
  for (uint32_t seed = 2000; seed < 2060; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomProgram program(seed, {.expensive = 20, .async = 20});
    const auto executor = task.Make(program.Build());
    const std::vector<int64_t> feeds = {3, 11};
    for (int run = 0; run < 5; ++run) {
      TestStep step(program.num_fetches(), {Tensor::Scalar(feeds[0]), Tensor::Scalar(feeds[1])});
      std::thread canceller([&] {
        if (run == 4) return;
        Env::Real().SleepForNanos((seed * 7 + run * 13) % 150 * 1000);
        step.cancellation.Cancel(Aborted("enough"));
      });
      const Status status =
          RunStep(*executor, step.Args(), run % 2 == 1 ? RunMode::kRunAsync : RunMode::kRun);
      canceller.join();
      if (status.ok()) {
        EXPECT_EQ(Numbers(step.fetches), program.Expected(feeds));
      } else {
        ++cancelled;
        EXPECT_EQ(status, Aborted("enough"));
        EXPECT_NE(run, 4);
      }
    }
  }
  EXPECT_GT(cancelled, 0);
}

TEST_P(ExecutorRandomFlowTest, StepsSideBySide) {
  TestTask task(GetParam());
  for (uint32_t seed = 3000; seed < 3020; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomProgram program(seed, {.expensive = 10, .async = 20});
    const auto executor = task.Make(program.Build());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int run = 0; run < 5; ++run) {
          TestStep step(program.num_fetches(),
                        {Tensor::Scalar<int64_t>(t), Tensor::Scalar<int64_t>(run)});
          EXPECT_TRUE(RunStep(*executor, step.Args(),
                              (run + t) % 2 == 0 ? RunMode::kRunAsync : RunMode::kRun)
                          .ok());
          EXPECT_EQ(Numbers(step.fetches), program.Expected({t, run}));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace penstock
