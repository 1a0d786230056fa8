// SPDX-License-Identifier: Apache-2.0
//
// Tests that trainings with a memory limit far below their usual need have the same results, and
// compares the compiler's predictions with the memory that the allocator counts.
#include <cstdio>

#include "core/tensor/memory_account.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/memory/trainings.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Checks that the predicted memory is at most 1.5 times the measured memory, and that the predicted
// worst case is at least the measured memory. On several threads a step runs several nodes at once,
// in another order than predicted, so it may take up to the worst case. training_steps_test
// compares more exactly, on one thread.
void ExpectPredicted(const Training& training) {
  const auto report = Predict(training);
  ASSERT_TRUE(report.ok()) << report.status();
  const auto trained = Train(training, {});
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto measured = static_cast<double>(trained->peak_bytes);
  const double predicted = report->devices.at(0).peak_own_bytes;
  const double worst = report->devices.at(0).worst_bytes;
  std::printf("predicted %.0f, at worst %.0f, measured %.0f\n%s", predicted, worst, measured,
              ToString(*report).c_str());
  EXPECT_LE(predicted, 1.5 * measured);
  EXPECT_LE(measured, worst);
}

// Checks that a training with a limit of `part` of the memory that it takes without a limit stays
// below the limit, and has the same results.
void ExpectFits(const Training& training, double part) {
  const auto free = Train(training, {});
  ASSERT_TRUE(free.ok()) << free.status();
  const auto limit = static_cast<int64_t>(part * static_cast<double>(free->peak_bytes));
  const auto report = Predict(training, limit);
  ASSERT_TRUE(report.ok()) << report.status();
  const auto limited = Train(training, {.memory_limit = limit});
  ASSERT_TRUE(limited.ok()) << limited.status();
  std::printf("limit %lld, measured %lld; %.1f ms a step instead of %.1f\n%s",
              static_cast<long long>(limit), static_cast<long long>(limited->peak_bytes),
              limited->step_ms, free->step_ms, ToString(*report).c_str());
  EXPECT_LE(limited->peak_bytes, limit);
  EXPECT_TRUE(SameResults(*free, *limited));
}

TEST(MemoryLimitTest, PredictsAConvnet) { ExpectPredicted(*FashionConvnet(64)); }
TEST(MemoryLimitTest, PredictsADeepConvnet) { ExpectPredicted(*DeepConvnet(8, 32)); }
TEST(MemoryLimitTest, PredictsAnUnrolledLstm) { ExpectPredicted(*UnrolledLstm(12, 128, 128)); }

TEST(MemoryLimitTest, AConvnetFits) { ExpectFits(*DeepConvnet(8, 32), 0.6); }
TEST(MemoryLimitTest, AnUnrolledLstmFits) { ExpectFits(*UnrolledLstm(12, 128, 128), 0.6); }

TEST(MemoryLimitTest, WhatCannotFitIsRefusedBeforeItRuns) {
  const auto training = DeepConvnet(4, 32);
  const auto trained = Train(*training, {.memory_limit = 1 << 20});
  EXPECT_EQ(trained.status().code(), StatusCode::kResourceExhausted);
  const std::string text(trained.status().message());
  EXPECT_THAT(text, HasSubstr("memory_limit: the step does not fit into 1048576 bytes"));
  EXPECT_THAT(text, HasSubstr("Relu"));
}

TEST(MemoryLimitTest, ImpossibleLimitsAreRefusedWithTheSession) {
  const auto training = DeepConvnet(1, 1);
  const auto trained = Train(*training, {.memory_limit = -1});
  EXPECT_EQ(trained.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(trained.status().message()), HasSubstr("memory_limit: expected"));
}

// Before the first feed the compiler assumes a batch of 64 pictures, which exceeds the limit; the
// fed batch of 8 does not.
TEST(MemoryLimitTest, ACallableIsFittedToItsFirstValues) {
  const auto training = DeepConvnet(4, 8);
  const auto free = Train(*training, {});
  ASSERT_TRUE(free.ok()) << free.status();
  const auto session =
      client::Session::New(training->program, "", {.memory_limit = free->peak_bytes * 8 / 10});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE((*session)->Execute(training->init).ok());
  const auto callable =
      (*session)->MakeCallable({training->feeds[0].tensor}, {}, {training->train});
  ASSERT_TRUE(callable.ok()) << callable.status();
  const Status small = (*callable)({training->feeds[0].value}).status();
  EXPECT_TRUE(small.ok()) << small;
  const auto larger = DeepConvnet(4, 64);
  const Status refused = (*callable)({larger->feeds[0].value}).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused;
  EXPECT_TRUE((*callable)({training->feeds[0].value}).ok()) << "the step of before is still there";
}

// If a client feeds more rows than the step was prepared for, the step is fitted to the limit
// again.
TEST(MemoryLimitTest, LargerFeedsAreFittedAgain) {
  const auto training = DeepConvnet(6, 4);
  const auto larger = DeepConvnet(6, 32);
  const auto free = Train(*larger, {});
  ASSERT_TRUE(free.ok()) << free.status();
  const int64_t limit = free->peak_bytes * 6 / 10;
  const auto session = client::Session::New(training->program, "", {.memory_limit = limit});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE((*session)->Execute(training->init).ok());
  ASSERT_TRUE((*session)->Run(training->feeds, {training->loss}).ok());
  std::vector<client::Feed> feeds = training->feeds;
  feeds[0].value = larger->feeds[0].value;
  MemoryAccount& task = MemoryAccount::Task();
  const auto callable = (*session)->MakeCallable({feeds[0].tensor}, {}, {training->train});
  ASSERT_TRUE(callable.ok());
  for (const bool as_callable : {false, true}) {
    const int64_t before = task.in_use();
    task.ResetPeak();
    const Status status = as_callable ? (*callable)({feeds[0].value}).status()
                                      : (*session)->Run(feeds, {}, {training->train}).status();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_LE(task.peak() - before, limit) << "as a callable: " << as_callable;
  }
}

}  // namespace
}  // namespace penstock
