// SPDX-License-Identifier: Apache-2.0
//
// Tests that a parameter server notices workers that run different programs.
#include "core/graph/builder.h"
#include "distributed/rpc/task_probe.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

// Three workers that train the variable "w" on the ps, each in its own session.
class ProgramsTest : public testing::Test {
 protected:
  // Makes a session of the worker, and runs a step with this activation and learning rate. If
  // `chief`, the graph also has the nodes that only a chief's program has.
  void Train(int worker, const std::string& activation, float rate, bool chief = false) {
    GraphBuilder g;
    const std::string task = StrCat("/job:worker/task:", worker);
    const Attrs of_w = {
        {"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}, {"shared_name", "w"}};
    const auto on_ps = g.DeviceScope("/job:ps/task:0");
    const Output w = CallIn(g, "VarHandleOp", {}, of_w);
    CallN("AssignVariableOp", {w, Constant(g, Tensor::Scalar(1.0f))});
    Output gradient;
    {
      const auto on_worker = g.DeviceScope(task);
      if (chief) Call("Exp", {Constant(g, Tensor::Scalar(2.0f))});
      const Output x = Call("ReadVariableOp", {w}, {{"dtype", DType::kFloat}});
      gradient = Call(activation, {x});
    }
    CallN("ResourceApplyGradientDescent", {w, Constant(g, Tensor::Scalar(rate)), gradient});
    ASSERT_EQ(g.status(), OkStatus());
    sessions_.push_back(cluster_.NewSession({}, "worker", worker));
    SessionInterface& session = *sessions_.back();
    ASSERT_EQ(session.Extend(g.graph()), OkStatus());
    std::vector<Tensor> none;
    if (chief) {
      ASSERT_EQ(session.Run({}, {}, {}, {"AssignVariableOp"}, &none, nullptr), OkStatus());
    }
    ASSERT_EQ(session.Run({}, {}, {}, {"ResourceApplyGradientDescent"}, &none, nullptr),
              OkStatus());
  }
  // Returns the differences that the ps reports to `penstock doctor`.
  std::vector<std::string> Differences() {
    return ProbeTasks({cluster_.spec().Address("ps", 0)}, 10'000)[0].program_differences;
  }

  TestCluster cluster_{{{"ps", 1}, {"worker", 3}}};
  std::vector<std::unique_ptr<SessionInterface>> sessions_;
};

TEST_F(ProgramsTest, WorkersOfOneProgram) {
  Train(0, "Relu", 0.5f, /*chief=*/true);
  Train(1, "Relu", 0.5f);
  Train(2, "Relu", 0.5f);
  EXPECT_THAT(Differences(), IsEmpty());
}

TEST_F(ProgramsTest, AnotherActivation) {
  Train(0, "Relu", 0.5f, /*chief=*/true);
  Train(1, "Tanh", 0.5f);
  EXPECT_THAT(Differences(),
              ElementsAre(MatchesRegex(
                  "variable 'w' is updated by different programs: from node '(Relu|Tanh)' "
                  "\\((Relu|Tanh)\\) "
                  "in session [0-9a-f]+ of /job:worker/replica:0/task:[01] at [0-9.:]+, from node "
                  "'(Relu|Tanh)' .* all workers should run the same program")));
  sessions_.pop_back();  // closes the session
  EXPECT_THAT(Differences(), IsEmpty());
}

TEST_F(ProgramsTest, AnotherLearningRate) {
  Train(0, "Relu", 0.5f, /*chief=*/true);
  Train(1, "Relu", 0.25f);
  EXPECT_THAT(Differences(), ElementsAre(MatchesRegex(".*from node 'Const[_0-9]*' \\(Const, "
                                                      "value=.*0\\.2?5.*from node.*Const, .*")));
}

}  // namespace
}  // namespace penstock
