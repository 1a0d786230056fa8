// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/settings.h"

#include <cstdlib>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

StatusOr<VerbsSettings> Parse(const std::map<std::string, std::string>& values) {
  return VerbsSettings::Parse([&](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  });
}

TEST(VerbsSettingsTest, DefaultsAreInTheirRanges) {
  const auto settings = Parse({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->retry_count, 6);
  EXPECT_TRUE(CheckVerbsSetting("timeout", StrCat(settings->timeout)).ok());
  EXPECT_TRUE(CheckVerbsSetting("queue_depth", StrCat(settings->queue_depth)).ok());
}

TEST(VerbsSettingsTest, AllAreRead) {
  const auto settings = Parse({{"device", "mlx5_1"},
                               {"port", "2"},
                               {"gid_index", "3"},
                               {"mtu", "2048"},
                               {"queue_depth", "64"},
                               {"timeout", "18"},
                               {"retry_count", "0"},
                               {"service_level", "3"},
                               {"traffic_class", "106"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->device, "mlx5_1");
  EXPECT_EQ(settings->port, 2);
  EXPECT_EQ(settings->gid_index, 3);
  EXPECT_EQ(settings->mtu, 2048);
  EXPECT_EQ(settings->queue_depth, 64);
  EXPECT_EQ(settings->timeout, 18);
  EXPECT_EQ(settings->retry_count, 0);
  EXPECT_EQ(settings->service_level, 3);
  EXPECT_EQ(settings->traffic_class, 106);
}

TEST(VerbsSettingsTest, AWrongOneIsNamedWithItsRange) {
  const std::pair<const char*, const char*> wrong[] = {
      {"port", "256"},      {"port", "-1"},        {"gid_index", "-2"},     {"mtu", "1500"},
      {"mtu", "many"},      {"queue_depth", "63"}, {"queue_depth", "1025"}, {"timeout", "0"},
      {"timeout", "19"},    {"retry_count", "7"},  {"service_level", "16"}, {"traffic_class", "x"},
      {"traffic_class", ""}};
  for (const auto& [name, value] : wrong) {
    const Status why = Parse({{name, value}}).status();
    EXPECT_EQ(why.code(), StatusCode::kInvalidArgument) << name << " " << value;
    EXPECT_THAT(std::string(why.message()), HasSubstr(StrCat("--verbs_", name)));
    EXPECT_THAT(std::string(why.message()), HasSubstr(VerbsVariable(name)));
    EXPECT_THAT(std::string(why.message()), HasSubstr("; write "));
  }
  EXPECT_EQ(Parse({{"retry_count", "7"}}).status(),
            InvalidArgument("--verbs_retry_count (or PENSTOCK_VERBS_RETRY_COUNT): '7' is not "
                            "valid; write 0 to 6"));
}

TEST(VerbsSettingsTest, TheEnvironmentIsRead) {
  setenv("PENSTOCK_VERBS_TIMEOUT", "12", 1);
  EXPECT_EQ(VerbsSettings::FromEnvironment()->timeout, 12);
  setenv("PENSTOCK_VERBS_TIMEOUT", "99", 1);
  EXPECT_FALSE(VerbsSettings::FromEnvironment().ok());
  unsetenv("PENSTOCK_VERBS_TIMEOUT");
}

TEST(VerbsSettingsTest, EachHasItsLineOfHelp) {
  for (const VerbsSettingInfo& info : AllVerbsSettings()) {
    EXPECT_TRUE(CheckVerbsSetting(info.name, "1").ok() || std::string(info.name) == "queue_depth" ||
                std::string(info.name) == "mtu" || std::string(info.name) == "timeout")
        << info.name;
  }
  EXPECT_FALSE(CheckVerbsSetting("colour", "1").ok());
}

}  // namespace
}  // namespace penstock
