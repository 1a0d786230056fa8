// SPDX-License-Identifier: Apache-2.0
#include "distributed/cluster/cluster_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ClusterSpecTest, FlagsNameTheTasks) {
  const auto config = TaskConfigFromFlags({.ps_hosts = "a:2222, b:2222",
                                           .worker_hosts = "c:2222,[::1]:2223",
                                           .job_name = "worker",
                                           .task_index = 1});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToString(), "ps: 0=a:2222 1=b:2222; worker: 0=c:2222 1=[::1]:2223");
  EXPECT_EQ(config->address(), "[::1]:2223");
  EXPECT_EQ(config->name(), "/job:worker/replica:0/task:1");
  EXPECT_FALSE(config->is_chief());
}

TEST(ClusterSpecTest, MistakesInFlagsAreOneLineThatNamesTheFlag) {
  const struct {
    ClusterFlags flags;
    const char* error;
  } cases[] = {
      {{"a:1", "b:1", "wroker", 0}, "--job_name: 'wroker' is not a job"},
      {{"a:1", "b:1", "", 0}, "--job_name: ''"},
      {{"a:1", "b:1", "worker", 1},
       "--task_index: 1 is out of range; --worker_hosts has only task 0"},
      {{"a:1", "b:1,c:1", "worker", -1},
       "--task_index: -1 is out of range; --worker_hosts has tasks 0 to 1"},
      {{"", "b:1", "ps", 0}, "--ps_hosts: empty, but --job_name=ps"},
      {{"a:1,", "b:1", "ps", 0}, "--ps_hosts: entry 1 is empty"},
      {{"a", "b:1", "ps", 0}, "--ps_hosts: 'a' is not host:port (there is no port)"},
      {{"a:1", "b:x1", "ps", 0}, "--worker_hosts: 'b:x1' is not host:port (the port is not"},
      {{"a:1", "b:65536", "ps", 0}, "--worker_hosts: 'b:65536' is not host:port"},
      {{"a:1", "b:-1", "ps", 0}, "--worker_hosts: 'b:-1' is not host:port"},
      {{"a:1", ":1", "ps", 0}, "--worker_hosts: ':1' is not host:port (there is no host)"},
      {{"a:1", "http://b:1", "ps", 0}, "--worker_hosts: 'http://b:1' is not host:port"},
      {{"a:1", "::1:1", "ps", 0}, "--worker_hosts: '::1:1' is not host:port (an IPv6"},
      {{"a:1", "a:1", "ps", 0}, "--worker_hosts: 'a:1' is the address of both ps 0 and worker 0"},
  };
  for (const auto& c : cases) {
    const Status status = TaskConfigFromFlags(c.flags).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

TEST(ClusterSpecTest, AParameterServerMayHaveAReplica) {
  ClusterFlags flags{.ps_hosts = "a:1,b:1",
                     .worker_hosts = "c:1",
                     .job_name = "ps",
                     .task_index = 1,
                     .ps_replica_hosts = "d:1, e:1"};
  StatusOr<TaskConfig> config = TaskConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->address(), "b:1");
  EXPECT_EQ(config->cluster.ReplicaAddress("ps", 1), "e:1");
  EXPECT_EQ(config->cluster.ReplicaAddress("worker", 0), "");
  EXPECT_EQ(config->cluster.jobs().at("ps").size(), 2);
  flags.replica_index = 1;
  config = TaskConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->address(), "e:1");
  EXPECT_EQ(config->name(), "/job:ps/replica:0/task:1");
}

TEST(ClusterSpecTest, MistakesInReplicasNameTheFlag) {
  const struct {
    std::string hosts;
    int index;
    std::string job, workers;
    const char* error;
  } cases[] = {
      {"d:1", 0, "ps", "c:1", "--ps_replica_hosts: 1 addresses for 2 parameter servers"},
      {"d:1,b:1", 0, "ps", "c:1", "--ps_replica_hosts: 'b:1' is the address of both ps 1"},
      {"d:1,e:0", 0, "ps", "c:1", "--ps_replica_hosts: 'e:0': a replica needs a port"},
      {"d:1,e", 0, "ps", "c:1", "--ps_replica_hosts: 'e' is not host:port"},
      {"d:1,e:1", 0, "ps", "", "--ps_replica_hosts: replicas need a worker"},
      {"d:1,e:1", 2, "ps", "c:1", "--replica_index: 2, must be 0 or 1"},
      {"d:1,e:1", 1, "worker", "c:1", "--replica_index: only a ps has two replicas"},
      {"", 1, "ps", "c:1", "--replica_index: only a ps has two replicas"},
  };
  for (const auto& c : cases) {
    const Status status = TaskConfigFromFlags({.ps_hosts = "a:1,b:1",
                                               .worker_hosts = c.workers,
                                               .job_name = c.job,
                                               .ps_replica_hosts = c.hosts,
                                               .replica_index = c.index})
                              .status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.error;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
}

TEST(ClusterSpecTest, AnyNumberOfTasksMayAskForAFreePort) {
  ClusterSpec cluster;
  EXPECT_TRUE(cluster.AddTask("ps", 0, "127.0.0.1:0").ok());
  EXPECT_TRUE(cluster.AddTask("worker", 0, "127.0.0.1:0").ok());
  EXPECT_FALSE(cluster.AddTask("worker", 0, "127.0.0.1:0").ok());
}

}  // namespace
}  // namespace penstock
