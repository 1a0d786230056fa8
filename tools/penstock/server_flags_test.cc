// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/server_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace penstock {
namespace {

constexpr char kWorker0[] =
    R"({"cluster": {"ps": ["h:1"], "worker": ["h:2"]}, "task": {"type": "worker", "index": 0}})";

StatusOr<ServerOptions> Parse(const std::string& line, const char* tf_config = nullptr) {
  CLI::App app;
  ServerFlags flags;
  flags.AddTo(&app);
  app.parse(line);
  return flags.Options(app, tf_config);
}

TEST(ServerFlagsTest, TaskFromFlags) {
  const auto options = Parse("--job_name=ps --task_index=0 --ps_hosts=h:1 --worker_hosts=h:2");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->task.name(), "/job:ps/replica:0/task:0");
  EXPECT_EQ(options->session_idle_timeout_ms, 3'600'000);
  EXPECT_EQ(options->stuck_after_ms, 60'000);
}

TEST(ServerFlagsTest, TaskFromTfConfigWithFlagsThatNameNoTask) {
  const auto options = Parse(
      "--protocol=grpc --status_port=80 --status_hosts=a,b --session_idle_timeout=2 "
      "--memory_limit=8m --calibration_file=/rates",
      kWorker0);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->task.name(), "/job:worker/replica:0/task:0");
  EXPECT_EQ(options->task.protocol, "grpc");
  EXPECT_EQ(options->task.status_port, 80);
  EXPECT_EQ(options->status_hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options->session_idle_timeout_ms, 2000);
  EXPECT_EQ(options->memory_limit, 8 << 20);
  EXPECT_EQ(options->calibration_file, "/rates");
}

TEST(ServerFlagsTest, FlagsThatNameATaskHideTfConfig) {
  const auto options =
      Parse("--job_name=ps --task_index=0 --ps_hosts=h:1 --worker_hosts=h:2", kWorker0);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->task.name(), "/job:ps/replica:0/task:0");
}

TEST(ServerFlagsTest, NoTask) {
  for (const char* tf_config : {static_cast<const char*>(nullptr), ""}) {
    const Status status = Parse("--status_port=80", tf_config).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("--job_name"), std::string::npos) << status.message();
  }
}

TEST(ServerFlagsTest, ValueOutOfRange) {
  for (const char* line : {"--status_port=65536", "--max_steps_in_flight=-1", "--memory_limit=0",
                           "--max_message_bytes=1m", "--session_idle_timeout=-1"}) {
    EXPECT_THROW((void)Parse(line), CLI::ValidationError) << line;
  }
}

}  // namespace
}  // namespace penstock
