// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/colocation.h"

#include <string>
#include <utility>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

ColocationGroups GroupsOf(const TestProgram& p) {
  StatusOr<ColocationGroups> groups = ColocationGroups::Of(p.graph, false);
  EXPECT_TRUE(groups.ok()) << groups.status();
  return *std::move(groups);
}

Attrs Beside(const char* node) {
  return {{"_class", std::vector<std::string>{StrCat("loc:@", node)}}};
}

TEST(ColocationTest, ReferencesAndClassesJoinGroups) {
  TestProgram p;
  Node* var = p.Add("var", "Var");
  Node* bump = p.Add("bump", "Bump", {{var, 0}}, {.device = "/job:ps"});
  Node* value = p.Add("value", "Identity", {{bump, 0}});
  Node* beside = p.Add("beside", "Input", {}, {.attrs = Beside("bump")});
  Node* pruned = p.Add("pruned", "Input", {}, {.attrs = Beside("nothing")});
  const ColocationGroups groups = GroupsOf(p);
  EXPECT_EQ(groups.Find(var->id()), groups.Find(bump->id()));
  EXPECT_EQ(groups.Find(var->id()), groups.Find(beside->id()));
  EXPECT_NE(groups.Find(var->id()), groups.Find(value->id())) << "a value may go anywhere";
  EXPECT_NE(groups.Find(var->id()), groups.Find(pruned->id()));
  EXPECT_EQ(groups.constraint(var->id()).ToString(), "/job:ps");
  EXPECT_TRUE(groups.stateful(beside->id()));
  EXPECT_FALSE(groups.stateful(value->id()));
}

TEST(ColocationTest, WhatComesAroundStaysWithItsMerge) {
  LoopTestProgram p;
  const ColocationGroups groups = GroupsOf(p);
  const int merge = p.graph.FindNode("merge")->id(), next = p.graph.FindNode("next")->id();
  EXPECT_EQ(groups.Find(merge), groups.Find(next));
  EXPECT_EQ(groups.constraint(next).ToString(), kWorker) << "whatever it asks for itself";
}

TEST(ColocationTest, ConstraintsThatContradictNameBothNodes) {
  TestProgram p;
  Node* var = p.Add("var", "Var", {}, {.device = "/job:ps"});
  p.Add("bump", "Bump", {{var, 0}}, {.device = "/job:worker"});
  const Status status = ColocationGroups::Of(p.graph, false).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'var' asks for device '/job:ps'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'bump' for '/job:worker'"));
  EXPECT_EQ(status.message().find("each of these"), string_view::npos) << "two nodes say it all";
}

// `task` states only the task number, which does not contradict the other constraints of the group.
TEST(ColocationTest, TheSmallestSetInConflictIsNamed) {
  TestProgram p;
  Node* var = p.Add("var", "Var");
  Node* ps = p.Add("ps", "Bump", {{var, 0}}, {.device = "/job:ps"});
  Node* task = p.Add("task", "Bump", {{ps, 0}}, {.device = "/task:1"});
  Node* between = p.Add("between", "Bump", {{task, 0}});
  p.Add("aside", "Bump", {{ps, 0}}, {.device = "/task:1"});
  p.Add("worker", "Bump", {{between, 0}}, {.device = "/job:worker"});
  const Status status = ColocationGroups::Of(p.graph, false).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'ps' asks for device '/job:ps' and 'worker' for '/job:worker'; each of "
                        "these must be where the next one is: 'ps', 'task', 'between', 'worker'."));
}

// "read" requests another device than its variable. The variable's device has priority.
TEST(ColocationTest, ConstraintsThatGaveWayAreNotNamed) {
  Graph graph(TestOps());
  const auto add = [&](Graph::NodeSpec spec) {
    spec.attrs.emplace("dtype", DType::kFloat);
    const auto node = graph.AddNode(std::move(spec));
    CHECK_OK(node.status());
    return *node;
  };
  Node* const handle = add({.name = "handle",
                            .op = "VarHandleOp",
                            .attrs = {{"shape", PartialShape({})}},
                            .device = "/job:ps"});
  add({.name = "read", .op = "ReadVariableOp", .inputs = {{handle, 0}}, .device = "/job:worker"});
  add({.name = "beside",
       .op = "Placeholder",
       .attrs = Beside("handle"),
       .device = "/job:worker/task:1"});
  const Status status = ColocationGroups::Of(graph, false).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'handle' asks for device '/job:ps' and 'beside' for "
                        "'/job:worker/task:1'. Give both"));
}

}  // namespace
}  // namespace penstock
