// SPDX-License-Identifier: Apache-2.0
#include "distributed/doctor/examine_cluster.h"

#include <functional>

#include "core/base/version.h"
#include "distributed/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Level = Finding::Level;
using Outcome = TaskProbe::Outcome;

TaskConfig Config(const std::string& ps, const std::string& worker_hosts) {
  ClusterFlags flags{.ps_hosts = ps, .worker_hosts = worker_hosts, .protocol = "auto"};
  auto cluster = ClusterSpecFromFlags(flags);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return {.cluster = *cluster, .job = ""};
}

// One ps and two workers, which all give correct answers.
class ExamineClusterTest : public testing::Test {
 protected:
  ExamineClusterTest() : config_(Config("a:1", "b:1,c:1")), tasks_(TasksOf(config_.cluster)) {
    for (ProbedTask& task : tasks_) {
      task.probe = {.outcome = Outcome::kServes,
                    .name = StrCat("/job:", task.job, "/replica:0/task:", task.index),
                    .incarnation = ++incarnation_,
                    .version = kVersion,
                    .protocol_version = kProtocolVersion,
                    .protocol = "auto",
                    .cluster = config_.cluster};
    }
  }
  TaskProbe& ps() { return tasks_[0].probe; }
  TaskProbe& worker(int index) { return tasks_[1 + index].probe; }
  // Returns the findings that are warnings or errors.
  Findings Troubles() {
    Findings troubles;
    for (Finding& finding : ExamineCluster(config_, tasks_)) {
      if (finding.level != Level::kOk) troubles.push_back(std::move(finding));
    }
    return troubles;
  }
  static auto Is(Level level, const std::string& subject, const std::string& what) {
    return AllOf(Field(&Finding::level, level), Field(&Finding::subject, HasSubstr(subject)),
                 Field(&Finding::what, HasSubstr(what)));
  }

  uint64_t incarnation_ = 0;
  TaskConfig config_;
  std::vector<ProbedTask> tasks_;
};

TEST_F(ExamineClusterTest, AHealthyClusterHasNoFindings) {
  EXPECT_THAT(Troubles(), IsEmpty());
  EXPECT_THAT(ExamineCluster(config_, tasks_),
              ElementsAre(Is(Level::kOk, "/job:ps/task:0 at a:1", "serves"),
                          Is(Level::kOk, "/job:worker/task:0 at b:1", "serves"),
                          Is(Level::kOk, "/job:worker/task:1 at c:1", "serves")));
}

TEST_F(ExamineClusterTest, TheSecondReplicaOfAPs) {
  ASSERT_EQ(config_.cluster.AddReplica("ps", 0, "d:1"), OkStatus());
  tasks_ = TasksOf(config_.cluster);
  ASSERT_EQ(tasks_.size(), 4u);
  EXPECT_EQ(tasks_[1].address, "d:1");
  EXPECT_TRUE(tasks_[1].second_replica);
  for (ProbedTask& task : tasks_) task.probe = {.outcome = Outcome::kRefused};
  config_.job = "ps";
  config_.replica = 1;
  EXPECT_THAT(Troubles(), ElementsAre(Is(Level::kWarning, "/job:ps/task:0 at a:1", "not running"),
                                      Is(Level::kWarning, "/job:worker/task:0", "not running"),
                                      Is(Level::kWarning, "/job:worker/task:1", "not running")));
}

TEST_F(ExamineClusterTest, AtTheStartOfATaskOthersNeedNotRunYet) {
  worker(0).outcome = Outcome::kRefused;
  worker(1).outcome = Outcome::kSilent;
  EXPECT_THAT(ExamineClusterAtStart(config_, tasks_), IsEmpty());
  worker(0).outcome = Outcome::kUnresolved;
  worker(1).outcome = Outcome::kForeign;
  ps().name = "/job:worker/replica:0/task:0";
  EXPECT_THAT(ExamineClusterAtStart(config_, tasks_),
              ElementsAre(Is(Level::kError, "/job:ps/task:0 at a:1", "says that it is /job:worker"),
                          Is(Level::kError, "/job:worker/task:0 at b:1", "has no address"),
                          Is(Level::kError, "/job:worker/task:1 at c:1", "is not a task of")));
}

TEST_F(ExamineClusterTest, ATaskIsMissing) {
  worker(1) = {.outcome = Outcome::kRefused, .detail = "Connection refused"};
  EXPECT_THAT(Troubles(), ElementsAre(Is(Level::kError, "/job:worker/task:1 at c:1",
                                         "is not running: Connection refused")));
  config_.job = "worker";
  config_.task = 1;
  EXPECT_THAT(Troubles(), IsEmpty()) << "it is about to be started";
}

TEST_F(ExamineClusterTest, NothingHasBeenStarted) {
  for (ProbedTask& task : tasks_) task.probe = {.outcome = Outcome::kRefused};
  EXPECT_THAT(Troubles(), ElementsAre(Is(Level::kWarning, "a:1", "is not running"),
                                      Is(Level::kWarning, "b:1", "is not running"),
                                      Is(Level::kWarning, "c:1", "is not running")));
}

TEST_F(ExamineClusterTest, AddressesThatAreNoTasks) {
  ps() = {.outcome = Outcome::kUnresolved, .detail = "Name or service not known"};
  worker(0) = {.outcome = Outcome::kUnreachable, .detail = "Connection timed out"};
  worker(1) = {.outcome = Outcome::kForeign, .detail = "unknown service"};
  EXPECT_THAT(Troubles(),
              ElementsAre(Is(Level::kError, "a:1", "the name has no address"),
                          Is(Level::kError, "b:1", "nothing answers: Connection timed out"),
                          Is(Level::kError, "c:1", "not a task of Penstock: unknown service")));
  ps() = {.outcome = Outcome::kSilent, .detail = "no answer for 9 ms"};
  EXPECT_THAT(Troubles()[0], Is(Level::kError, "a:1", "says nothing: no answer for 9 ms"));
}

TEST_F(ExamineClusterTest, SwappedAddresses) {
  std::swap(ps(), worker(0));
  EXPECT_THAT(
      Troubles(),
      ElementsAre(Is(Level::kError, "/job:ps/task:0", "it is /job:worker/replica:0/task:0"),
                  Is(Level::kError, "/job:worker/task:0", "it is /job:ps/replica:0/task:0")));
}

TEST_F(ExamineClusterTest, TwoAddressesOfOneTask) {
  worker(1).incarnation = worker(0).incarnation;
  EXPECT_THAT(Troubles(), ElementsAre(Is(Level::kError, "c:1", "is the same process as b:1")));
}

TEST_F(ExamineClusterTest, Versions) {
  ps().version = "0.0.9";
  worker(1).protocol_version = kProtocolVersion + 1;
  EXPECT_THAT(Troubles(), ElementsAre(Is(Level::kWarning, "a:1", "is of version 0.0.9"),
                                      Is(Level::kError, "c:1", "of the worker protocol")));
}

TEST_F(ExamineClusterTest, ProgramsThatDiffer) {
  ps().program_differences = {"variable 'w' is updated by Adam in session a"};
  EXPECT_THAT(Troubles(), ElementsAre(Is(Level::kWarning, "/job:ps/task:0 at a:1",
                                         "variable 'w' is updated by Adam in session a")));
}

TEST_F(ExamineClusterTest, Protocols) {
  worker(0).protocol = "shm";
  EXPECT_THAT(Troubles(),
              ElementsAre(Is(Level::kError, "b:1", "by protocol 'shm', expected 'auto'")));
}

TEST_F(ExamineClusterTest, Clocks) {
  ps().clock_ahead_s = -3;
  worker(0).clock_ahead_s = 0.9;
  worker(1).clock_ahead_s = 60;
  EXPECT_THAT(Troubles(), ElementsAre(Is(Level::kWarning, "a:1", "3.0 s behind this host's"),
                                      Is(Level::kWarning, "c:1", "60.0 s ahead of this host's")));
}

TEST_F(ExamineClusterTest, TasksThatDisagreeAboutTheCluster) {
  ps().cluster = Config("a:1", "b:1,d:1,e:1").cluster;
  EXPECT_THAT(
      Troubles(),
      ElementsAre(Is(Level::kWarning, "a:1", "/job:worker/task:1 at d:1, here it is at c:1"),
                  Is(Level::kWarning, "a:1", "with a /job:worker/task:2 at e:1")));
  ps().cluster = ClusterSpec();
  EXPECT_THAT(Troubles(), IsEmpty()) << "it need not know the others";
}

TEST_F(ExamineClusterTest, LoopbackBesideOtherHosts) {
  const auto trouble = [](const std::string& ps, const std::string& worker_hosts) {
    const TaskConfig config = Config(ps, worker_hosts);
    Findings errors;
    for (const Finding& finding : ExamineCluster(config, TasksOf(config.cluster))) {
      if (finding.subject == "the cluster") errors.push_back(finding);
    }
    return errors;
  };
  EXPECT_THAT(trouble("localhost:1", "b:1"), ElementsAre(Is(Level::kError, "", "'localhost:1'")));
  EXPECT_THAT(trouble("[::1]:1", "b:1"), ElementsAre(Is(Level::kError, "", "'[::1]:1'")));
  EXPECT_THAT(trouble("localhost:1", "127.0.0.1:2"), IsEmpty());
  EXPECT_THAT(trouble("", "b:1"), ElementsAre(Is(Level::kWarning, "", "has no ps")));
  EXPECT_THAT(trouble("a:1", ""), ElementsAre(Is(Level::kError, "", "has no chief")));
}

}  // namespace
}  // namespace penstock
