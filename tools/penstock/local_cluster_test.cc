// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/local_cluster.h"

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/env.h"
#include "core/base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Returns options for a cluster of shell scripts: $@ has the four flags.
LocalClusterOptions Scripts(const std::string& script) {
  return {.command = {"/bin/sh", "-c", script, "task"},
          .num_ps = 1,
          .num_workers = 2,
          .grace_seconds = 1};
}

int RunCluster(const LocalClusterOptions& options, std::string* output) {
  std::atomic<bool> stop{false};
  testing::internal::CaptureStdout();
  int code;
  {
    LocalCluster cluster(options);
    const Status started = cluster.Start();
    EXPECT_TRUE(started.ok()) << started;
    code = cluster.Wait(stop);
  }
  *output = testing::internal::GetCapturedStdout();
  return code;
}

const char kPsWaits[] = "case \"$*\" in *--job_name=ps*) exec sleep 60;; esac; ";

TEST(LocalClusterTest, TasksGetTheirFlagsAndPsEndWithTheWorkers) {
  std::string output;
  const int64_t begin = Env::Real().NowNanos();
  EXPECT_EQ(RunCluster(Scripts(std::string(kPsWaits) + "echo \"$@\""), &output), 0);
  EXPECT_LT(Env::Real().NowNanos() - begin, int64_t{20'000'000'000});
  EXPECT_THAT(output, HasSubstr("[worker/0] --ps_hosts=127.0.0.1:"));
  EXPECT_THAT(output, HasSubstr("--job_name=worker --task_index=1"));
}

TEST(LocalClusterTest, OneTaskShowsTheStatusPage) {
  LocalClusterOptions options = Scripts(std::string(kPsWaits) + "echo $3 $4 $5.");
  options.status_port = 8123;
  std::string output;
  EXPECT_EQ(RunCluster(options, &output), 0);
  EXPECT_THAT(output, HasSubstr("--job_name=worker --task_index=0 --status_port=8123."));
  EXPECT_THAT(output, HasSubstr("--job_name=worker --task_index=1 ."));
}

TEST(LocalClusterTest, AReplicatedPsIsTwoProcesses) {
  // The workers end, and with them the cluster, when both processes have printed their flags.
  const std::string folder = testing::TempDir() + "/replicas_started";
  ASSERT_TRUE(Env::Real().CreateDirectories(folder).ok());
  for (const std::string& old : *Env::Real().ListDirectory(folder)) {
    ASSERT_TRUE(Env::Real().RemoveFile(folder + "/" + old).ok());
  }
  LocalClusterOptions options = Scripts("echo \"$@\"; case \"$*\" in *--job_name=ps*) touch " +
                                        folder + "/$$; exec sleep 60;; esac; until [ $(ls " +
                                        folder + " | wc -l) = 2 ]; do sleep 0.01; done");
  options.ps_replicas = 2;
  std::string output;
  EXPECT_EQ(RunCluster(options, &output), 0);
  EXPECT_THAT(output, HasSubstr("[ps/0.0] --ps_hosts=127.0.0.1:"));
  EXPECT_THAT(output, HasSubstr("--replica_index=0 --job_name=ps --task_index=0"));
  EXPECT_THAT(output, HasSubstr("[ps/0.1] --ps_hosts=127.0.0.1:"));
  EXPECT_THAT(output, HasSubstr("--replica_index=1 --job_name=ps --task_index=0"));
  EXPECT_THAT(output, testing::ContainsRegex("worker/1. .*--ps_replica_hosts=127.0.0.1:"));
}

TEST(LocalClusterTest, AKilledTaskIsStartedAgainWhileRestartsAreLeft) {
  // Worker 1 kills itself the first time; a file records that.
  const std::string file = testing::TempDir() + "/killed_once";
  std::remove(file.c_str());
  LocalClusterOptions options =
      Scripts(std::string(kPsWaits) + "case \"$*\" in *--task_index=1*) [ -e " + file +
              " ] || { touch " + file + "; kill -9 $$; };; esac; echo done");
  options.restarts_max = 1;
  std::string output;
  EXPECT_EQ(RunCluster(options, &output), 0);
  EXPECT_THAT(output, HasSubstr("[worker/1] done"));
  std::remove(file.c_str());
  options.restarts_max = 0;
  EXPECT_EQ(RunCluster(options, &output), 128 + SIGKILL);
}

// Returns options for a cluster whose worker 0 kills itself, the first time, when worker 1 has
// ended and was reaped.
LocalClusterOptions WithAChiefThatIsKilledLast() {
  const std::string killed = testing::TempDir() + "/chief_killed_once";
  const std::string pid = testing::TempDir() + "/pid_of_worker_1";
  std::remove(killed.c_str());
  std::remove(pid.c_str());
  const std::string await_end =
      "while [ ! -s " + pid + " ] || kill -0 $(cat " + pid + ") 2>/dev/null; do sleep 0.01; done; ";
  return Scripts(std::string(kPsWaits) + "case \"$*\" in *--task_index=0*) [ -e " + killed +
                 " ] || { " + await_end + "touch " + killed + "; kill -9 $$; };; *) echo $$ > " +
                 pid + ";; esac; echo done");
}

TEST(LocalClusterTest, ARestartedChiefGetsTheWorkersThatHadEnded) {
  for (const bool restart_ended_workers : {true, false}) {
    LocalClusterOptions options = WithAChiefThatIsKilledLast();
    options.restarts_max = 1;
    options.restart_ended_workers = restart_ended_workers;
    std::string output;
    EXPECT_EQ(RunCluster(options, &output), 0);
    const size_t first = output.find("[worker/1] done");
    ASSERT_NE(first, std::string::npos) << output;
    const bool again = output.find("[worker/1] done", first + 1) != std::string::npos;
    EXPECT_EQ(again, restart_ended_workers) << output;
  }
}

TEST(LocalClusterTest, AnElasticClusterGoesOnWithoutAKilledWorker) {
  const auto killing = [](const std::string& tasks) {
    LocalClusterOptions options = Scripts(std::string(kPsWaits) + "case \"$*\" in " + tasks +
                                          ") kill -9 $$;; esac; " + "sleep 0.3; echo done");
    options.elastic = true;
    return options;
  };
  std::string output;
  EXPECT_EQ(RunCluster(killing("*--task_index=1*"), &output), 0);
  EXPECT_THAT(output, HasSubstr("[worker/0] done"));
  EXPECT_EQ(RunCluster(killing("*"), &output), 128 + SIGKILL);
  // A worker that fails for good ends the cluster.
  LocalClusterOptions failing = Scripts(std::string(kPsWaits) +
                                        "case \"$*\" in *--task_index=1*) exit 3;; esac; exec "
                                        "sleep 60");
  failing.elastic = true;
  EXPECT_EQ(RunCluster(failing, &output), 3);
}

TEST(LocalClusterTest, AFailureForGoodEndsTheCluster) {
  std::string output;
  EXPECT_EQ(RunCluster(Scripts(std::string(kPsWaits) +
                               "case \"$*\" in *--task_index=1*) exit 3;; esac; exec sleep 60"),
                       &output),
            3);
}

TEST(LocalClusterTest, ATaskThatIgnoresTheRequestIsKilled) {
  std::string output;
  const int64_t begin = Env::Real().NowNanos();
  EXPECT_EQ(RunCluster(Scripts("case \"$*\" in *--job_name=ps*) "
                               "trap '' TERM; while :; do sleep 1; done;; "
                               "esac; sleep 0.2"),
                       &output),
            0);
  EXPECT_LT(Env::Real().NowNanos() - begin, int64_t{20'000'000'000});
}

TEST(LocalClusterTest, LogsGoToFilesExceptTheChiefs) {
  LocalClusterOptions options = Scripts(std::string(kPsWaits) + "echo hello from $4");
  options.log_dir = testing::TempDir() + "/logs";
  std::string output;
  EXPECT_EQ(RunCluster(options, &output), 0);
  const auto log = Env::Real().ReadFile(options.log_dir + "/worker-1.log");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(*log, HasSubstr("hello from --task_index=1"));
}

TEST(LocalClusterTest, WithALogOfJsonEveryLineIsAnObject) {
  SetLogOptions({.format = LogFormat::kJson});
  std::string output;
  EXPECT_EQ(RunCluster(Scripts(std::string(kPsWaits) + "echo '{\"event\":\"mine\"}'; echo plain; " +
                               "echo '{not json'"),
                       &output),
            0);
  SetLogOptions({});
  std::map<std::string, int> seen;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(json.is_object()) << line;
    ++seen[json["event"] == "output" ? json["text"] : json["event"]];
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"mine", 2}, {"plain", 2}, {"{not json", 2}}));
}

TEST(LocalClusterTest, StopEndsIt) {
  std::atomic<bool> stop{false};
  LocalCluster cluster(Scripts("exec sleep 60"));
  ASSERT_TRUE(cluster.Start().ok());
  std::thread stopper([&] {
    Env::Real().SleepForNanos(200'000'000);
    stop = true;
  });
  EXPECT_EQ(cluster.Wait(stop), 130);
  stopper.join();
}

}  // namespace
}  // namespace penstock
