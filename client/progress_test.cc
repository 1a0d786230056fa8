// SPDX-License-Identifier: Apache-2.0
#include "client/progress.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/base/forwarding_env.h"
#include "core/base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

// The real Env, except that the test sets the clock.
class ClockEnv final : public ForwardingEnv {
 public:
  ClockEnv() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns; }
  void SleepForNanos(int64_t nanos) override { now_ns += nanos; }

  int64_t now_ns = 0;
};

// Collects the lines written to a file that is not a terminal.
struct ProgressLog {
  ProgressLog() : file(std::tmpfile()) {}
  ~ProgressLog() { std::fclose(file); }
  std::string text() {
    std::string all(std::ftell(file), '\0');
    std::rewind(file);
    all.resize(std::fread(all.data(), 1, all.size(), file));
    return all;
  }
  std::FILE* file;
};

TEST(ProgressTest, SaysHowFarHowFastAndHowLong) {
  ProgressLog log;
  ClockEnv env;
  Progress progress({.label = "worker 1", .max_steps = 1000, .examples_per_step = 128}, log.file,
                    env);
  progress.Step(100);
  env.now_ns = 10'000'000'000;
  progress.Step(300, {{"loss", 0.51234}, {"accuracy", 0.875}});
  EXPECT_EQ(progress.Line(),
            "worker 1  step 300/1000  20 steps/s  2560 examples/s  accuracy 0.8750  loss 0.5123  "
            "0:35 left");
}

TEST(ProgressTest, InALogOfJsonTheNumbersAreFields) {
  SetLogOptions({.format = LogFormat::kJson});
  ProgressLog log;
  ClockEnv env;
  testing::internal::CaptureStderr();
  {
    Progress progress({.max_steps = 1000}, log.file, env);
    progress.Step(100);
    env.now_ns = 10'000'000'000;
    progress.Step(300, {{"loss", 0.5}});
    progress.Say("saved");
  }
  std::istringstream lines(testing::internal::GetCapturedStderr());
  SetLogOptions({});
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1]["event"], "progress");
  EXPECT_EQ(events[1]["step"], 300);
  EXPECT_EQ(events[1]["max_steps"], 1000);
  EXPECT_EQ(events[1]["steps_per_second"], 20);
  EXPECT_EQ(events[1]["loss"], 0.5);
  EXPECT_EQ(events[2]["text"], "saved");
  EXPECT_EQ(log.text(), "");
}

TEST(ProgressTest, ElsewhereThanOnATerminalALineNowAndThen) {
  ProgressLog log;
  ClockEnv env;
  {
    Progress progress({.max_steps = 100, .plain_seconds = 5}, log.file, env);
    for (int step = 1; step <= 100; ++step) {
      env.now_ns += 100'000'000;
      progress.Step(step);
      if (step == 20) progress.Say("saved");
    }
  }
  EXPECT_EQ(log.text(),
            "step 1/100\n"
            "saved\n"
            "step 51/100  10 steps/s  0:05 left\n"
            "step 100/100  10 steps/s\n");
}

TEST(ProgressTest, TheLastStepIsAlwaysShown) {
  ProgressLog log;
  ClockEnv env;
  {
    Progress progress({}, log.file, env);
    for (int step = 1; step <= 7; ++step) progress.Step(step);
  }
  EXPECT_THAT(log.text(), HasSubstr("step 7\n"));
}

TEST(ProgressTest, GoingBackToACheckpointStartsTheRateAgain) {
  ProgressLog log;
  ClockEnv env;
  Progress progress({}, log.file, env);
  progress.Step(100);
  env.now_ns = 1'000'000'000;
  progress.Step(40);
  env.now_ns = 2'000'000'000;
  progress.Step(50);
  EXPECT_EQ(progress.Line(), "step 50  10 steps/s");
}

TEST(ProgressTest, Durations) {
  EXPECT_EQ(DurationString(0), "0:00");
  EXPECT_EQ(DurationString(65.4), "1:05");
  EXPECT_EQ(DurationString(3600 * 2 + 63), "2:01:03");
  EXPECT_EQ(DurationString(-3), "0:00");
}

}  // namespace
}  // namespace penstock::client
