// SPDX-License-Identifier: Apache-2.0
//
// Tests the report of a task in a simulated cluster: a ps with variables and a queue, and a worker
// whose step waits for it.
#include "distributed/insight/task_report.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/graph/builder.h"
#include "core/op/noted_staleness.h"
#include "distributed/sim/sim_cluster.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kReportedWorker[] = "/job:worker/replica:0/task:0";
constexpr int64_t kSecondNanos = 1'000'000'000;

class TaskReportTest : public testing::Test {
 protected:
  // Adds the nodes to the graph on the parameter server.
  TaskReportTest() {
    const auto ps = g_.DeviceScope("/job:ps");
    for (const int64_t rows : {10, 1000}) {
      const std::string name = StrCat("v", rows);
      const Output variable = CallIn(
          g_, "VarHandleOp", {},
          {{"dtype", DType::kFloat}, {"shape", PartialShape({rows})}, {"shared_name", name}});
      assigned_.push_back(StrCat("assign_", name));
      const Output value = Constant(g_, Tensor(DType::kFloat, Shape({rows})));
      Call("AssignVariableOp", {variable, value}, {}, assigned_.back());
    }
    const std::vector<DType> types = {DType::kFloat};
    const Output queue = CallIn(
        g_, "FIFOQueueV2", {}, {{"component_types", types}, {"shared_name", "q"}, {"capacity", 3}});
    taken_ = Call("QueueDequeueV2", {queue}, {{"component_types", types}}, "take").name();
    Call("QueueEnqueueV2", {queue, Outputs{Constant(g_, Tensor::Scalar(1.f))}}, {}, put_);
    CHECK_OK(g_.status());
  }
  void InCluster(const std::function<void(SimCluster&)>& story) {
    CHECK_OK(scheduler_.Run([&] {
      SimCluster cluster(scheduler_, env_, {{"ps", 1}, {"worker", 1}});
      story(cluster);
    }));
  }
  std::unique_ptr<SessionInterface> Session(SimCluster& cluster,
                                            const SessionOptions& options = {}) {
    auto session = cluster.NewSession("client", "worker", 0, options);
    CHECK_OK(session->Extend(g_.graph()));
    return session;
  }
  static Status Run(SessionInterface& session, const std::vector<std::string>& fetches,
                    const std::vector<std::string>& targets, Cancellation* cancellation = nullptr) {
    std::vector<Tensor> out;
    return session.Run({.cancellation = cancellation}, {}, fetches, targets, &out, nullptr);
  }

  SimScheduler scheduler_{{.seed = 1}};
  SimEnv env_{scheduler_, Env::Real()};
  GraphBuilder g_;
  std::vector<std::string> assigned_;
  std::string taken_;
  const std::string put_ = "put";
};

TEST_F(TaskReportTest, AnIdleTask) {
  InCluster([&](SimCluster& cluster) {
    scheduler_.SleepUntil(env_.NowNanos() + 5 * kSecondNanos);
    const wire::TaskReport report = ReportTask(cluster.task("worker", 0), env_);
    EXPECT_EQ(report.self().task(), kReportedWorker);
    EXPECT_EQ(report.self().incarnation(), cluster.task("worker", 0).self().incarnation);
    EXPECT_GE(report.uptime_ms(), 5000);
    EXPECT_EQ(report.session_size(), 0);
    EXPECT_EQ(report.part_size(), 0);
    EXPECT_EQ(report.steps().begun(), 0);
  });
}

TEST_F(TaskReportTest, VariablesComeInTheOrderOfTheirSizes) {
  InCluster([&](SimCluster& cluster) {
    const auto session = Session(cluster);
    ASSERT_EQ(Run(*session, {}, assigned_), OkStatus());
    const wire::TaskReport report = ReportTask(cluster.task("ps", 0), env_);
    EXPECT_EQ(report.variables(), 2);
    EXPECT_EQ(report.variable_bytes(), 4040);
    ASSERT_EQ(report.resource_size(), 2);
    EXPECT_EQ(report.resource(0).name().name(), "v1000");
    EXPECT_EQ(report.resource(0).bytes(), 4000);
    EXPECT_EQ(report.resource(0).type(), "Variable");
    EXPECT_EQ(report.resource(1).name().name(), "v10");
    const wire::TaskReport worker = ReportTask(cluster.task("worker", 0), env_);
    ASSERT_EQ(worker.session_size(), 1);
    EXPECT_EQ(worker.session(0).steps_begun(), 1);
    EXPECT_EQ(worker.steps().begun(), 1);
  });
}

TEST_F(TaskReportTest, IsolatedSessionsDoNotMultiplyTheStaleness) {
  InCluster([&](SimCluster& cluster) {
    const auto updates = [&] {
      const wire::TaskReport report = ReportTask(cluster.task("ps", 0), env_);
      int64_t sum = 0;
      for (const int64_t count : report.staleness().count()) sum += count;
      return sum;
    };
    const auto first = Session(cluster, {.isolate_state = true});
    const auto second = Session(cluster, {.isolate_state = true});
    for (const auto* session : {&first, &second}) {
      ASSERT_EQ(Run(**session, {}, assigned_), OkStatus());
    }
    const Worker& ps = cluster.task("ps", 0).worker();
    ASSERT_GE(ps.stores().size(), 3u) << "or the sessions have no stores of their own";
    const int64_t before = updates();  // the counts are those of the process
    NoteStaleness(ps.stores().front().device, 2);
    EXPECT_EQ(updates(), before + 1);
  });
}

TEST_F(TaskReportTest, AStepThatWaitsForAQueue) {
  InCluster([&](SimCluster& cluster) {
    const auto session = Session(cluster);
    Status ended;
    Cancellation cancellation;
    const auto waits = scheduler_.StartThread(
        "client", [&] { ended = Run(*session, {taken_}, {}, &cancellation); });
    scheduler_.SleepUntil(env_.NowNanos() + 2 * kSecondNanos);

    const wire::TaskReport worker = ReportTask(cluster.task("worker", 0), env_);
    ASSERT_EQ(worker.session_size(), 1);
    ASSERT_EQ(worker.session(0).step_size(), 1);
    const wire::StepReport& step = worker.session(0).step(0);
    EXPECT_EQ(step.fetch(0), taken_);
    EXPECT_GE(step.age_ms(), 1000);
    ASSERT_EQ(step.running_in_size(), 2);

    const wire::TaskReport ps = ReportTask(cluster.task("ps", 0), env_);
    ASSERT_EQ(ps.part_size(), 1);
    EXPECT_EQ(ps.part(0).step_id(), step.step_id());
    ASSERT_EQ(ps.part(0).wait_size(), 1);
    EXPECT_EQ(ps.part(0).wait(0).node(), "take");
    EXPECT_EQ(ps.part(0).wait(0).resource().name(), "q");
    EXPECT_EQ(ps.part(0).wait(0).kind(), wire::UseReport::TAKE);
    ASSERT_EQ(ps.resource_size(), 1);
    EXPECT_EQ(ps.resource(0).type(), "FIFOQueue");
    EXPECT_EQ(ps.resource(0).queue().capacity(), 3);
    EXPECT_EQ(ps.resource(0).queue().waiting_takes(), 1);

    ASSERT_EQ(Run(*session, {}, {put_}), OkStatus());
    scheduler_.SleepUntil(env_.NowNanos() + kSecondNanos);
    EXPECT_EQ(ended, OkStatus());
    EXPECT_EQ(ReportTask(cluster.task("ps", 0), env_).part_size(), 0);
    bool sent = false;
    const wire::TaskReport sender = ReportTask(cluster.task("ps", 0), env_);
    for (const wire::SentReport& to : sender.sent()) {
      sent |= to.to().find(kReportedWorker) == 0 && to.tensors() > 0;
    }
    EXPECT_TRUE(sent);
  });
}

TEST_F(TaskReportTest, StepsThatFailAreCountedByTheirCode) {
  InCluster([&](SimCluster& cluster) {
    const auto session = Session(cluster);
    std::vector<Tensor> out;
    EXPECT_FALSE(session->Run({.timeout_ms = 500}, {}, {taken_}, {}, &out, nullptr).ok());
    const wire::TaskReport report = ReportTask(cluster.task("worker", 0), env_);
    EXPECT_EQ(report.steps().failed().at("DEADLINE_EXCEEDED"), 1);
    EXPECT_EQ(report.session(0).step_size(), 0);
  });
}

}  // namespace
}  // namespace penstock
