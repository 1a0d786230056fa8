// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/base/log_limiter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr int64_t kSecond = 1'000'000'000;

// Sets log options for the test, and returns the text that `write` writes to standard error.
template <class Write>
std::string Written(const LogOptions& options, Write write) {
  SetLogOptions(options);
  testing::internal::CaptureStderr();
  write();
  std::string text = testing::internal::GetCapturedStderr();
  SetLogOptions({});
  return text;
}

TEST(LogTest, TextForPeople) {
  const std::string text = Written(
      {}, [] { Log({.task = "/job:ps/replica:0/task:1", .event = "started", .text = "serves"}); });
  EXPECT_THAT(text, MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9]+Z info "
                                 "/job:ps/task:1: serves\n"));
}

TEST(LogTest, AnObjectPerLineForPrograms) {
  const std::string text = Written({.format = LogFormat::kJson}, [] {
    Log({.level = LogLevel::kWarning,
         .task = "/job:ps/replica:0/task:1",
         .event = "step_failed",
         .text = "a \"quoted\"\nsecond line, \x1b and \xff",
         .fields = {{"session", "00ff"}, {"step", int64_t{1} << 60}, {"seconds", 0.5}}});
  });
  ASSERT_EQ(text.find('\n'), text.size() - 1) << text;
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["task"], "/job:ps/task:1");
  EXPECT_EQ(json["event"], "step_failed");
  EXPECT_EQ(json["text"], "a \"quoted\"\nsecond line, \x1b and \xEF\xBF\xBD");
  EXPECT_EQ(json["session"], "00ff");
  EXPECT_EQ(json["step"], int64_t{1} << 60);
  EXPECT_EQ(json["seconds"], 0.5);
  EXPECT_TRUE(std::regex_match(json["time"].get<std::string>(),
                               std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")))
      << text;
}

TEST(LogTest, ATextCannotLookLikeAnotherLineOrColourATerminal) {
  const std::string text = Written({}, [] {
    Log({.level = LogLevel::kError, .event = "e", .text = "one\n2026-01-01 two\x1b[31m\n"});
  });
  EXPECT_THAT(text, HasSubstr("error one\n    2026-01-01 two\\x1b[31m\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(LogTest, LinesBelowTheLevelAreNotWritten) {
  const auto all = [] {
    Log({.level = LogLevel::kDebug, .event = "e", .text = "one"});
    Log({.level = LogLevel::kInfo, .event = "e", .text = "two"});
    Log({.level = LogLevel::kWarning, .event = "e", .text = "three"});
    Log({.level = LogLevel::kError, .event = "e", .text = "four"});
  };
  const auto lines = [&](LogLevel level) {
    const std::string text = Written({.level = level}, all);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(LogLevel::kDebug), 4);
  EXPECT_EQ(lines(LogLevel::kInfo), 3);
  EXPECT_EQ(lines(LogLevel::kWarning), 2);
  EXPECT_EQ(lines(LogLevel::kError), 1);
  EXPECT_EQ(lines(LogLevel::kOff), 0);
}

TEST(LogTest, ALineInALoopIsWrittenTenTimes) {
  const std::string text = Written({}, [] {
    for (int i = 0; i < 1000; ++i) {
      Log({.level = LogLevel::kWarning, .event = "loop", .text = "again", .limited = true});
    }
    Log({.level = LogLevel::kWarning, .event = "other", .text = "another", .limited = true});
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  EXPECT_THAT(text, HasSubstr("another\n"));
}

TEST(LogTest, TheTaskOfTheProcess) {
  SetLogTask("/job:worker/replica:0/task:2");
  const std::string text =
      Written({}, [] { Log({.level = LogLevel::kError, .event = "e", .text = "why"}); });
  SetLogTask("");
  EXPECT_THAT(text, HasSubstr("error /job:worker/task:2: why\n"));
}

TEST(LogTest, TheEnvironment) {
  setenv("PENSTOCK_LOG_FORMAT", "json", 1);
  EXPECT_EQ(LogOptionsOfEnvironment({.level = LogLevel::kError})->format, LogFormat::kJson);
  EXPECT_EQ(LogOptionsOfEnvironment({.level = LogLevel::kError})->level, LogLevel::kError);
  setenv("PENSTOCK_LOG_FORMAT", "xml", 1);
  EXPECT_THAT(
      std::string(LogOptionsOfEnvironment({}).status().message()),
      HasSubstr("PENSTOCK_LOG_FORMAT in the environment: 'xml': expected one of text, json"));
  unsetenv("PENSTOCK_LOG_FORMAT");
  EXPECT_EQ(LogOptionsOfEnvironment({})->format, LogFormat::kText);
}

TEST(LogLimiterTest, ABurstThenOneAPauseAndTheNumberLeftOut) {
  LogLimiter limiter;
  for (int i = 0; i < LogLimiter::kBurst; ++i) EXPECT_EQ(limiter.Admit("a", 0), 0);
  EXPECT_EQ(limiter.Admit("a", kSecond), std::nullopt);
  EXPECT_EQ(limiter.Admit("b", kSecond), 0);
  EXPECT_EQ(limiter.Admit("a", 9 * kSecond), std::nullopt);
  EXPECT_EQ(limiter.Admit("a", 11 * kSecond), 2);
  EXPECT_EQ(limiter.Admit("a", 12 * kSecond), std::nullopt);
  EXPECT_EQ(limiter.Admit("a", 20 * kSecond), 1);
}

TEST(LogLimiterTest, AfterALongPauseABurstAgainButNoMore) {
  LogLimiter limiter;
  for (int64_t start : {int64_t{0}, 100'000 * kSecond}) {
    int admitted = 0;
    for (int i = 0; i < 50; ++i) admitted += limiter.Admit("a", start).has_value() ? 1 : 0;
    EXPECT_EQ(admitted, LogLimiter::kBurst);
  }
}

TEST(LogLimiterTest, RemembersABoundedNumberOfKeys) {
  LogLimiter limiter;
  for (int i = 0; i < LogLimiter::kBurst; ++i) EXPECT_EQ(limiter.Admit("loud", 0), 0);
  for (size_t i = 1; i < LogLimiter::kKeysMax; ++i) (void)limiter.Admit(StrCat(i), 0);
  EXPECT_EQ(limiter.Admit("loud", 1), std::nullopt);
  // With one key too many, the limiter drops the keys without a line for a long time.
  EXPECT_EQ(limiter.Admit("new", 1000 * kSecond), 0);
  EXPECT_EQ(limiter.Admit("loud", 1000 * kSecond), 0);
}

}  // namespace
}  // namespace penstock
