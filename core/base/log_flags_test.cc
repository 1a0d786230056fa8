// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// Parses the flags. Returns the error's text; "" if there is none.
std::string Parse(std::vector<std::string> reversed_flags) {
  CLI::App app;
  AddLogFlags(app);
  try {
    app.parse(std::move(reversed_flags));
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(LogFlagsTest, InfoUnlessToldOtherwise) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(CurrentLogOptions().level, LogLevel::kInfo);
  EXPECT_EQ(CurrentLogOptions().format, LogFormat::kText);
}

TEST(LogFlagsTest, FlagsBeatTheEnvironment) {
  setenv("PENSTOCK_LOG_LEVEL", "debug", 1);
  setenv("PENSTOCK_LOG_FORMAT", "json", 1);
  EXPECT_EQ(Parse({"--log_level=error"}), "");
  EXPECT_EQ(CurrentLogOptions().level, LogLevel::kError);
  EXPECT_EQ(CurrentLogOptions().format, LogFormat::kJson);
  ExportLogOptions();
  EXPECT_STREQ(std::getenv("PENSTOCK_LOG_LEVEL"), "error");
  EXPECT_STREQ(std::getenv("PENSTOCK_LOG_FORMAT"), "json");
  setenv("PENSTOCK_LOG_LEVEL", "loud", 1);
  EXPECT_THAT(Parse({}), HasSubstr("PENSTOCK_LOG_LEVEL in the environment: 'loud'"));
  unsetenv("PENSTOCK_LOG_LEVEL");
  unsetenv("PENSTOCK_LOG_FORMAT");
}

TEST(LogFlagsTest, MistakesNameTheFlagAndTheChoices) {
  EXPECT_THAT(Parse({"--log_format=xml"}),
              HasSubstr("--log_format: 'xml': expected one of text, json"));
  EXPECT_THAT(Parse({"--log_level=all"}),
              HasSubstr("--log_level: 'all': expected one of debug, info, warning, error, off"));
}

}  // namespace
}  // namespace penstock
