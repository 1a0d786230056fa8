// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/colocation.h"

#include <string>
#include <vector>

#include "core/compiler/testing/world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

ColocationGroups GroupsOf(const World& w) {
  StatusOr<ColocationGroups> groups = ColocationGroups::Of(w.graph, false);
  EXPECT_TRUE(groups.ok()) << groups.status();
  return *std::move(groups);
}

Attrs Beside(const char* node) {
  return {{"_class", std::vector<std::string>{StrCat("loc:@", node)}}};
}

TEST(ColocationTest, ReferencesAndClassesJoinGroups) {
  World w;
  Node* var = w.Add("var", "Var");
  Node* bump = w.Add("bump", "Bump", {{var, 0}}, {.device = "/job:ps"});
  Node* value = w.Add("value", "Identity", {{bump, 0}});
  Node* beside = w.Add("beside", "Input", {}, {.attrs = Beside("bump")});
  Node* pruned = w.Add("pruned", "Input", {}, {.attrs = Beside("nothing")});
  const ColocationGroups groups = GroupsOf(w);
  EXPECT_EQ(groups.Find(var->id()), groups.Find(bump->id()));
  EXPECT_EQ(groups.Find(var->id()), groups.Find(beside->id()));
  EXPECT_NE(groups.Find(var->id()), groups.Find(value->id())) << "a value may go anywhere";
  EXPECT_NE(groups.Find(var->id()), groups.Find(pruned->id()));
  EXPECT_EQ(groups.constraint(var->id()).ToString(), "/job:ps");
  EXPECT_TRUE(groups.stateful(beside->id()));
  EXPECT_FALSE(groups.stateful(value->id()));
}

TEST(ColocationTest, WhatComesAroundStaysWithItsMerge) {
  LoopWorld w;
  const ColocationGroups groups = GroupsOf(w);
  const int merge = w.graph.FindNode("merge")->id(), next = w.graph.FindNode("next")->id();
  EXPECT_EQ(groups.Find(merge), groups.Find(next));
  EXPECT_EQ(groups.constraint(next).ToString(), kWorker) << "whatever it asks for itself";
}

TEST(ColocationTest, ConstraintsThatContradictNameBothNodes) {
  World w;
  Node* var = w.Add("var", "Var", {}, {.device = "/job:ps"});
  w.Add("bump", "Bump", {{var, 0}}, {.device = "/job:worker"});
  const Status status = ColocationGroups::Of(w.graph, false).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'var' asks for device '/job:ps'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'bump' for '/job:worker'"));
}

}  // namespace
}  // namespace penstock
