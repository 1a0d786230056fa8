// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/passes.h"
#include "core/compiler/testing/world.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(SweepTest, DropsWhatFoldingLeftWithoutConsumers) {
  World w;
  Node* one = w.Constant("one", {1});
  Node* sum = w.Add("sum", "Sum2", {{one, 0}, {one, 0}});
  w.Add("target", "Sum2", {{one, 0}, {sum, 0}});
  w.Add("use", "Use", {{sum, 0}});
  ASSERT_TRUE(w.Compile({}, {}, {"target", "use"}).ok());
  EXPECT_NE(w.After("merge").FindNode("sum"), nullptr);
  const Graph& swept = w.After("sweep");
  EXPECT_EQ(swept.FindNode("sum"), nullptr);
  EXPECT_NE(swept.FindNode("target"), nullptr) << "also without consumers";
  EXPECT_NE(swept.FindNode("use"), nullptr) << "stateful";
}

TEST(SweepTest, KeepsWhatReadsAReference) {
  World w;
  Node* var = w.Add("var", "Var");
  Node* read = w.Add("read", "Identity", {{var, 0}});
  Node* huge = w.Add("huge", "Huge", {{read, 0}});
  w.Add("shape", "Shape", {{huge, 0}});
  ASSERT_TRUE(w.Compile({}, {"shape:0"}).ok());
  const Graph& swept = w.After("sweep");
  EXPECT_EQ(swept.FindNode("huge"), nullptr);
  EXPECT_NE(swept.FindNode("read"), nullptr) << "fails if the variable has no value yet";
}

TEST(SweepTest, KeepsOneOfTwoEqualReads) {
  World w;
  Node* var = w.Add("var", "Var");
  Node* a = w.Add("a", "Identity", {{var, 0}});
  Node* b = w.Add("b", "Identity", {{var, 0}});
  w.Add("sum", "Sum2", {{a, 0}, {b, 0}});
  ASSERT_TRUE(w.Compile({}, {"sum:0"}).ok());
  EXPECT_EQ(CountOps(w.After("sweep"), "Identity"), 1);
}

TEST(SweepTest, DropsLoopsThatNothingNeeds) {
  LoopWorld w;
  CompileOptions options;
  CompileReport report;
  const Graph program(CompilerTestOps());
  PassContext context{.program = program,
                      .devices = w.devices,
                      .options = options,
                      .report = report,
                      .graph = &w.graph};
  ASSERT_TRUE(RemoveDeadNodes(context).ok());
  EXPECT_EQ(w.graph.num_nodes(), 1);
  EXPECT_NE(w.graph.FindNode("k"), nullptr) << "stateful";
}

}  // namespace
}  // namespace penstock
