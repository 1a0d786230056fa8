// SPDX-License-Identifier: Apache-2.0
#include "distributed/doctor/examine_host.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Level = Finding::Level;

auto Is(Level level, const std::string& subject, const std::string& what) {
  return AllOf(Field(&Finding::level, level), Field(&Finding::subject, HasSubstr(subject)),
               Field(&Finding::what, HasSubstr(what)));
}

TaskConfig Worker0(const std::string& address) {
  auto config =
      TaskConfigFromFlags({.ps_hosts = "a:1", .worker_hosts = address, .job_name = "worker"});
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

Findings Examine(const std::map<std::string, std::string>& variables) {
  return ExamineVariables(Worker0("b:1"), [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

TEST(ExamineVariablesTest, Proxies) {
  EXPECT_THAT(Examine({}), IsEmpty());
  EXPECT_THAT(Examine({{"http_proxy", "http://p:3128"}, {"no_proxy", "a,b"}}),
              ElementsAre(Is(Level::kWarning, "http_proxy", "no_proxy is 'a,b'")));
}

TEST(ExamineVariablesTest, TfConfigThatContradictsTheFlags) {
  const std::string cluster = R"({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, )";
  EXPECT_THAT(Examine({{"TF_CONFIG", cluster + R"("task": {"type": "worker", "index": 0}})"}}),
              IsEmpty());
  EXPECT_THAT(Examine({{"TF_CONFIG", cluster + R"("task": {"type": "ps", "index": 0}})"}}),
              ElementsAre(Is(Level::kWarning, "TF_CONFIG", "/job:ps/replica:0/task:0")));
  EXPECT_THAT(Examine({{"TF_CONFIG", "{"}}),
              ElementsAre(Is(Level::kWarning, "TF_CONFIG", "not valid JSON")));
}

TEST(ExamineListeningTest, OwnPort) {
  EXPECT_THAT(ExamineListening(Worker0("127.0.0.1:0"), false),
              ElementsAre(Is(Level::kOk, "/job:worker", "can listen at 127.0.0.1:0")));
  EXPECT_THAT(ExamineListening(Worker0("127.0.0.1:1"), true),
              ElementsAre(Is(Level::kOk, "/job:worker", "listens at 127.0.0.1:1")));
  TaskConfig elsewhere = Worker0("b:7000");
  elsewhere.listen_address = "192.0.2.1";  // an address of no host: RFC 5737
  EXPECT_THAT(ExamineListening(elsewhere, false),
              ElementsAre(Is(Level::kError, "/job:worker", "cannot listen on 192.0.2.1:7000")));
  TaskConfig nobody = Worker0("b:7000");
  nobody.job = "";
  EXPECT_THAT(ExamineListening(nobody, false), IsEmpty());
}

TEST(ExamineFileLimitTest, ALimitThatIsTooLowForTheCluster) {
  const ClusterSpec cluster = Worker0("b:1").cluster;
  EXPECT_THAT(ExamineFileLimit(cluster, 1024), IsEmpty());
  EXPECT_THAT(ExamineFileLimit(cluster, 64),
              ElementsAre(Is(Level::kWarning, "open files",
                             "is 64 for this process; a task of this cluster may")));
  EXPECT_GT(FileLimit(), 0u);
}

TEST(ExamineCheckpointsTest, DirectoriesThatCanBeWrittenOrNot) {
  Env& env = Env::Real();
  const std::string base = testing::TempDir() + "/doctor";
  const ClusterSpec one_host = Worker0("a:2").cluster, two_hosts = Worker0("b:1").cluster;
  EXPECT_THAT(ExamineCheckpoints(base + "/new/deep", one_host, env),
              ElementsAre(Is(Level::kOk, "/new/deep", "can be written")));
  EXPECT_THAT(*env.ListDirectory(base + "/new/deep"), IsEmpty()) << "nothing is left behind";
  EXPECT_THAT(ExamineCheckpoints(base + "/new/deep", two_hosts, env),
              ElementsAre(Is(Level::kOk, "", "can be written"),
                          Is(Level::kWarning, "", "tasks run on several hosts")));
  ASSERT_TRUE(env.WriteFileAtomically(base + "/file", "").ok());
  EXPECT_THAT(ExamineCheckpoints(base + "/file", one_host, env),
              ElementsAre(Is(Level::kError, "/file", "no checkpoint could be written")));
}

}  // namespace
}  // namespace penstock
