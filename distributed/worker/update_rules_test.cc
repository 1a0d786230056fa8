// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/update_rules.h"

#include "core/base/check.h"
#include "core/graph/builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kCpu[] = "/job:ps/replica:0/task:0/device:CPU:0";

// A graph that updates the variables "w" and "b", or the first of them.
struct Program {
  Program(const std::string& rule, int variables, bool resource = true) {
    for (const char* name : {"w", "b"}) {
      if (variables-- == 0) break;
      const Output variable =
          CallIn(g, resource ? "VarHandleOp" : "VariableV2", {},
                 {{"dtype", DType::kFloat}, {"shape", PartialShape({1})}, {"shared_name", name}});
      const Output rate = Constant(g, Tensor::Scalar(0.1f));
      const Output gradient = Constant(g, Tensor::Vector<float>({1}));
      const std::string op = StrCat(resource ? "ResourceApply" : "Apply", rule);
      if (rule == "GradientDescent") {
        CallN(op, {variable, rate, gradient});
      } else {
        CallN(op, {variable, variable, rate, gradient, rate});  // Momentum
      }
    }
    CHECK_OK(g.status());
  }
  const Graph& graph() const { return g.graph(); }
  GraphBuilder g;
};

TEST(UpdateRules, TwoRulesForOneVariableAreToldOnceForTwoSessions) {
  UpdateRules rules;
  const Program descent("GradientDescent", 2), momentum("Momentum", 2);
  EXPECT_THAT(rules.Add("a", "worker 0", kCpu, descent.graph()), IsEmpty());
  const std::string differs =
      "variable 'w' is updated by GradientDescent in session a of worker 0, and by Momentum in "
      "session b of worker 1: all workers should run the same program";
  const std::vector<std::string> told = rules.Add("b", "worker 1", kCpu, momentum.graph());
  EXPECT_THAT(told, ElementsAre(differs));
  EXPECT_THAT(rules.Add("b", "worker 1", kCpu, momentum.graph()), IsEmpty());
  EXPECT_EQ(rules.Differences().size(), 1u);
  rules.Remove("a");
  EXPECT_THAT(rules.Differences(), IsEmpty());
  EXPECT_EQ(rules.Add("a", "worker 0", kCpu, descent.graph()).size(), 1u) << "a new session";
}

TEST(UpdateRules, SessionsThatAgree) {
  UpdateRules rules;
  const Program both("GradientDescent", 2), one("GradientDescent", 1), none("Momentum", 0);
  const Program refs("GradientDescent", 2, /*resource=*/false);
  EXPECT_THAT(rules.Add("a", "worker 0", kCpu, both.graph()), IsEmpty());
  EXPECT_THAT(rules.Add("b", "worker 1", kCpu, one.graph()), IsEmpty());
  EXPECT_THAT(rules.Add("c", "worker 2", kCpu, none.graph()), IsEmpty());
  EXPECT_THAT(rules.Add("d", "worker 3", kCpu, refs.graph()), IsEmpty()) << "the same rule";
  // A program may use two rules in turn.
  const Program momentum("Momentum", 2);
  EXPECT_EQ(rules.Add("e", "worker 4", kCpu, momentum.graph()).size(), 1u);
  EXPECT_THAT(rules.Add("e", "worker 4", kCpu, both.graph()), IsEmpty());
  EXPECT_THAT(rules.Differences(), IsEmpty());
  EXPECT_THAT(rules.Add("f", "worker 5", "another device", momentum.graph()), IsEmpty());
}

// A summary in which the updates of a Program depend on a node of this op.
TrainingProgram SummaryOf(const Program& program, const std::string& op, uint64_t hash) {
  TrainingProgram summary;
  for (const Node* node : program.graph().nodes()) {
    if (node->op().update_rule.empty()) continue;
    summary.updates.push_back({.node = node->name(), .hash = hash});
  }
  summary.nodes = {{1, "'x' (Read)"}, {hash, StrCat("'layer/", op, "' (", op, ")")}};
  return summary;
}

TEST(UpdateRules, ProgramsThatDifferAreToldWithTheirFirstNodes) {
  UpdateRules rules;
  const Program program("GradientDescent", 2);
  const auto add = [&](const std::string& session, const std::string& op, uint64_t hash) {
    return rules.Add(session, StrCat("worker of ", session), kCpu, program.graph(),
                     SummaryOf(program, op, hash));
  };
  EXPECT_THAT(add("a", "Relu", 2), IsEmpty());
  EXPECT_THAT(add("b", "Relu", 2), IsEmpty()) << "the same program";
  const std::string differs =
      "variable 'w' is updated by different programs: from node 'layer/Relu' (Relu) in session a "
      "of worker of a, from node 'layer/Tanh' (Tanh) in session c of worker of c: all workers "
      "should run the same program";
  std::vector<std::string> told = add("c", "Tanh", 3);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(rules.Differences(), ElementsAre(testing::HasSubstr("session c")));
  EXPECT_TRUE(told[0] == differs || told[0].starts_with("variable 'b'")) << told[0];
  EXPECT_THAT(rules.Add("d", "worker of d", kCpu, program.graph()), IsEmpty()) << "not known";
  // A session may have several steps for one variable.
  EXPECT_THAT(add("c", "Relu", 2), IsEmpty());
  EXPECT_THAT(rules.Differences(), IsEmpty());
}

TEST(UpdateRules, OnlyTheNewestSessionOfAMasterCounts) {
  UpdateRules rules;
  const Program program("GradientDescent", 1);
  const auto add = [&](const std::string& session, const std::string& master, uint64_t hash) {
    return rules.Add(session, master, kCpu, program.graph(), SummaryOf(program, "Relu", hash));
  };
  EXPECT_THAT(add("c", "worker 0", 2), IsEmpty());
  EXPECT_EQ(add("b", "worker 1", 3).size(), 1u);
  // The client of worker 0 was killed, and another one came with the program of worker 1.
  EXPECT_THAT(add("a", "worker 0", 3), IsEmpty());
  EXPECT_THAT(rules.Differences(), IsEmpty());
  EXPECT_THAT(add("c", "worker 0", 4), IsEmpty());
  rules.Remove("a");
  EXPECT_EQ(rules.Differences().size(), 1u);
}

TEST(UpdateRules, ASessionOfTooManyProgramsAgreesWithAll) {
  UpdateRules rules;
  const Program program("GradientDescent", 1);
  EXPECT_THAT(rules.Add("a", "worker 0", kCpu, program.graph(), SummaryOf(program, "Relu", 2)),
              IsEmpty());
  for (uint64_t hash = 3; hash < 30; ++hash) {
    rules.Add("b", "worker 1", kCpu, program.graph(), SummaryOf(program, "Relu", hash));
    EXPECT_EQ(rules.Differences().size(), hash < 3 + 16 ? 1u : 0u) << hash;
  }
}

TEST(UpdateRules, SummariesThatDoNotSayWhereTheyDiffer) {
  UpdateRules rules;
  const Program program("GradientDescent", 1);
  TrainingProgram one = SummaryOf(program, "Relu", 2), two = one;
  two.updates[0].hash = 3;
  two.updates.push_back({.node = "no such node", .hash = 4});
  EXPECT_THAT(rules.Add("a", "worker 0", kCpu, program.graph(), one), IsEmpty());
  EXPECT_THAT(rules.Add("b", "worker 1", kCpu, program.graph(), two),
              ElementsAre("variable 'w' is updated by different programs: in session a of worker "
                          "0, in session b of worker 1: all workers should run the same program"));
}

}  // namespace
}  // namespace penstock
