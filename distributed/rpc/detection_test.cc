// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/detection.h"

#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::string Mistake(const ServerOptions& options) {
  const Status status = CheckDetection(options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(DetectionTest, DefaultsMakeSense) {
  EXPECT_EQ(CheckDetection({}), OkStatus());
  EXPECT_EQ(CheckDetection(TestCluster::Quick()), OkStatus());
}

TEST(DetectionTest, MistakesNameFlagValueAndRange) {
  EXPECT_EQ(Mistake({.heartbeat_ms = 0}), "--heartbeat_ms: 0, expected 50 to 20000 ms");
  EXPECT_EQ(Mistake({.heartbeat_ms = 60'000}), "--heartbeat_ms: 60000, expected 50 to 20000 ms");
  EXPECT_EQ(Mistake({.heartbeats_missed_max = 1}),
            "--heartbeats_missed_max: 1, expected 2 to 100");
  EXPECT_EQ(Mistake({.keepalive_ms = -1}), "--keepalive_ms: -1, expected 50 to 600000 ms");
  EXPECT_EQ(Mistake({.keepalive_timeout_ms = int64_t{1} << 40}),
            "--keepalive_timeout_ms: 1099511627776, expected 50 to 600000 ms");
}

TEST(DetectionTest, ATimeoutIsNotShorterThanItsInterval) {
  EXPECT_THAT(Mistake({.keepalive_ms = 5000, .keepalive_timeout_ms = 4000}),
              HasSubstr("--keepalive_timeout_ms: 4000, expected at least --keepalive_ms, which is "
                        "5000"));
}

TEST(DetectionTest, AServerRefusesThem) {
  ServerOptions options = TestCluster::Quick();
  options.task = {.job = "ps"};
  ASSERT_EQ(options.task.cluster.AddTask("ps", 0, "127.0.0.1:0"), OkStatus());
  options.heartbeat_ms = 1;
  EXPECT_THAT(std::string(Server::Create(options).status().message()),
              HasSubstr("--heartbeat_ms: 1, expected"));
}

TEST(DetectionTest, TheLineSaysWhenATaskIsLost) {
  EXPECT_EQ(DescribeDetection({}),
            "sends heartbeats every 2000 ms: a task that misses 3 is lost, within 8000 ms; probes "
            "a silent connection after 2000 ms, and closes it after 4000 ms without an answer");
}

}  // namespace
}  // namespace penstock
