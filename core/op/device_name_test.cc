// SPDX-License-Identifier: Apache-2.0
#include "core/op/device_name.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(DeviceName, ParsesEverySpelling) {
  const struct {
    const char* text;
    const char* want;  // canonical name, or a substring of the error
  } kCases[] = {
      {"", ""},
      {"/", ""},
      {"/job:ps", "/job:ps"},
      {"/job:worker/replica:0/task:17/device:GPU:3", "/job:worker/replica:0/task:17/device:GPU:3"},
      {"/task:2/job:ps", "/job:ps/task:2"},
      {"/job:*/task:*", ""},
      {"/device:CPU:*", "/device:CPU:*"},
      {"/device:CPU", "/device:CPU:*"},
      {"/device:*:1", "/device:*:1"},
      {"/device:gpu:0", "/device:GPU:0"},
      {"/cpu:0", "/device:CPU:0"},
      {"/CPU:0", "/device:CPU:0"},
      {"/gpu:*", "/device:GPU:*"},
      {"cpu", "/device:CPU:*"},
      {"GPU:1", "/device:GPU:1"},
      {"device:XLA_CPU:0", "/device:XLA_CPU:0"},
      {"/job:ps/task:1/cpu:0", "/job:ps/task:1/device:CPU:0"},

      {"/job:", "in 'job:'"},
      {"/job:a b", "in 'job:a b'"},
      {"/job:1a", "begins with a letter"},
      {"/job:a:b", "expected job:NAME"},
      {"/task:-1", "expected a number"},
      {"/task:x", "expected a number"},
      {"/task:99999999999", "expected a number"},
      {"/replica:", "expected a number"},
      {"/job:a/job:b", "given twice"},
      {"/cpu:0/gpu:0", "given twice"},
      {"/tpu:0", "expected job:NAME"},
      {"/device:GPU:0:1", "expected job:NAME"},
      {"nonsense", "device 'nonsense'"},
  };
  for (const auto& c : kCases) {
    const StatusOr<DeviceName> name = DeviceName::Parse(c.text);
    if (!name.ok()) {
      EXPECT_THAT(std::string(name.status().message()), HasSubstr(c.want)) << c.text;
      EXPECT_THAT(std::string(name.status().message()), HasSubstr(c.text));
      continue;
    }
    EXPECT_EQ(name->ToString(), c.want) << c.text;
    EXPECT_EQ(*DeviceName::Parse(name->ToString()), *name);
  }
}

TEST(DeviceName, MatchesWhatItStates) {
  const DeviceName full = *DeviceName::Parse("/job:worker/replica:0/task:1/device:GPU:2");
  EXPECT_TRUE(full.full());
  for (const char* yes : {"", "/job:worker", "/task:1", "/gpu:*", "/gpu:2", "/device:*:2",
                          "/job:worker/replica:0/task:1/device:GPU:2"}) {
    EXPECT_TRUE(DeviceName::Parse(yes)->Matches(full)) << yes;
  }
  for (const char* no : {"/job:ps", "/task:0", "/cpu:*", "/gpu:0", "/job:worker/task:2"}) {
    EXPECT_FALSE(DeviceName::Parse(no)->Matches(full)) << no;
  }
  EXPECT_EQ(full.Task().ToString(), "/job:worker/replica:0/task:1");
  EXPECT_TRUE(full.SameTask(*DeviceName::Parse("/job:worker/replica:0/task:1/cpu:0")));
  EXPECT_FALSE(full.SameTask(*DeviceName::Parse("/job:worker/replica:0/task:2/gpu:2")));
}

TEST(DeviceName, Merges) {
  const struct {
    const char* a;
    const char* b;
    const char* hard;
    const char* soft;
  } kCases[] = {
      {"", "/job:ps", "/job:ps", "/job:ps"},
      {"/job:ps", "/task:1/cpu:0", "/job:ps/task:1/device:CPU:0", "/job:ps/task:1/device:CPU:0"},
      {"/gpu:*", "/gpu:1", "/device:GPU:1", "/device:GPU:1"},
      {"/gpu:0", "/gpu:1", "contradicts", "/device:GPU:*"},
      {"/job:ps/gpu:0", "/cpu:0", "contradicts", "/job:ps"},
      {"/job:ps", "/job:worker", "contradicts", "contradicts"},
      {"/task:0", "/task:1", "contradicts", "contradicts"},
  };
  for (const auto& c : kCases) {
    for (const bool soft : {false, true}) {
      const auto merged = DeviceName::Parse(c.a)->Merge(*DeviceName::Parse(c.b), soft);
      const std::string got =
          merged.ok() ? merged->ToString() : std::string(merged.status().message());
      const char* want = soft ? c.soft : c.hard;
      EXPECT_THAT(got, HasSubstr(want)) << c.a << " with " << c.b;
      EXPECT_TRUE(!merged.ok() || got == want) << got;
    }
  }
}

}  // namespace
}  // namespace penstock
