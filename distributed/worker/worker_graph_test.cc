// SPDX-License-Identifier: Apache-2.0
//
// Graphs of several parts; those of one part are run by worker_test.cc.
#include "distributed/worker/worker_graph.h"

#include "core/base/join.h"
#include "core/runtime/testing/test_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class WorkerGraphTest : public testing::Test {
 protected:
  void Add(TestGraph g) { parts_.push_back({.executor = task_.Make(g.Take())}); }
  // Fetch `index` is the number of the part.
  void AddNumber(int index) {
    TestGraph g;
    g.Fetch(g.AddSum("TestSum", {}, {{"plus", index}}), index);
    Add(std::move(g));
  }
  void AddOne(const std::string& op, Attrs attrs = {}) {
    TestGraph g;
    g.AddSum(op, {}, std::move(attrs));
    Add(std::move(g));
  }
  Status Run(TestStep& step) {
    graph_ = std::make_shared<WorkerGraph>(std::move(parts_), std::vector<TaskName>(), false);
    Wait wait(task_.threads, "the parts of a graph");
    graph_->RunAsync(step.Args(), wait.done());
    return wait.Get();
  }

  TestTask task_;
  std::vector<WorkerGraph::Part> parts_;
  std::shared_ptr<WorkerGraph> graph_;
};

TEST_F(WorkerGraphTest, AllPartsRun) {
  for (int i = 0; i < 3; ++i) AddNumber(i);
  TestStep step(3);
  ASSERT_EQ(Run(step), OkStatus());
  EXPECT_FALSE(graph_->one_part());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step.fetches[i].scalar<int64_t>(), i);
}

TEST_F(WorkerGraphTest, TheFirstFailureEndsAllPartsAndIsTheStatus) {
  AddOne("TestStall");
  AddOne("TestFail", {{"message", "end of input"}});
  AddOne("TestStall");
  TestStep step;
  const Status status = Run(step);
  EXPECT_THAT(std::string(status.message()), HasSubstr("end of input"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("{{node n0}}"));
  EXPECT_EQ(step.cancellation.status(), status);
}

TEST_F(WorkerGraphTest, ACancelledStepIsTheSameForAllParts) {
  AddOne("TestStall");
  AddNumber(0);
  TestStep step(1);
  step.cancellation.Cancel(Unavailable("ps 0 is gone"));
  EXPECT_EQ(Run(step), Unavailable("ps 0 is gone"));
}

// A graph may be deregistered, and its session deleted, while it runs.
TEST_F(WorkerGraphTest, WhoRunsItKeepsIt) {
  AddOne("TestStall");
  AddOne("TestStall");
  graph_ = std::make_shared<WorkerGraph>(std::move(parts_), std::vector<TaskName>(), false);
  TestStep step;
  Wait wait(task_.threads, "the parts of a graph");
  graph_->RunAsync(step.Args(), wait.done());
  const std::weak_ptr<WorkerGraph> weak = graph_;
  graph_ = nullptr;
  EXPECT_FALSE(weak.expired());
  step.cancellation.Cancel(Cancelled("had enough"));
  EXPECT_EQ(wait.Get(), Cancelled("had enough"));
}

TEST_F(WorkerGraphTest, SaysWhatItNeeds) {
  AddNumber(0);
  const std::vector<TaskName> producers = {{"ps", 0, 1}};
  const WorkerGraph graph(std::move(parts_), producers, true);
  EXPECT_TRUE(graph.one_part());
  EXPECT_TRUE(graph.communicates());
  EXPECT_EQ(graph.producers(), producers);
}

}  // namespace
}  // namespace penstock
