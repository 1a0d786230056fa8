// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/passes.h"
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(SweepTest, DropsWhatFoldingLeftWithoutConsumers) {
  TestProgram p;
  Node* one = p.Constant("one", {1});
  Node* sum = p.Add("sum", "Sum2", {{one, 0}, {one, 0}});
  p.Add("target", "Sum2", {{one, 0}, {sum, 0}});
  p.Add("use", "Use", {{sum, 0}});
  ASSERT_TRUE(p.Compile({}, {}, {"target", "use"}).ok());
  EXPECT_NE(p.After("merge").FindNode("sum"), nullptr);
  const Graph& swept = p.After("sweep");
  EXPECT_EQ(swept.FindNode("sum"), nullptr);
  EXPECT_NE(swept.FindNode("target"), nullptr) << "also without consumers";
  EXPECT_NE(swept.FindNode("use"), nullptr) << "stateful";
}

TEST(SweepTest, KeepsWhatReadsAReference) {
  TestProgram p;
  Node* var = p.Add("var", "Var");
  Node* read = p.Add("read", "Identity", {{var, 0}});
  Node* huge = p.Add("huge", "Huge", {{read, 0}});
  p.Add("shape", "Shape", {{huge, 0}});
  ASSERT_TRUE(p.Compile({}, {"shape:0"}).ok());
  const Graph& swept = p.After("sweep");
  EXPECT_EQ(swept.FindNode("huge"), nullptr);
  EXPECT_NE(swept.FindNode("read"), nullptr) << "fails if the variable has no value yet";
}

TEST(SweepTest, KeepsOneOfTwoEqualReads) {
  TestProgram p;
  Node* var = p.Add("var", "Var");
  Node* a = p.Add("a", "Identity", {{var, 0}});
  Node* b = p.Add("b", "Identity", {{var, 0}});
  p.Add("sum", "Sum2", {{a, 0}, {b, 0}});
  ASSERT_TRUE(p.Compile({}, {"sum:0"}).ok());
  EXPECT_EQ(CountOps(p.After("sweep"), "Identity"), 1);
}

TEST(SweepTest, DropsLoopsThatNothingNeeds) {
  LoopTestProgram p;
  CompileOptions options;
  CompileReport report;
  const Graph program(CompilerTestOps());
  PassContext context{.program = program,
                      .devices = p.devices,
                      .options = options,
                      .report = report,
                      .graph = &p.graph};
  ASSERT_TRUE(RemoveDeadNodes(context).ok());
  EXPECT_EQ(p.graph.num_nodes(), 1);
  EXPECT_NE(p.graph.FindNode("k"), nullptr) << "stateful";
}

}  // namespace
}  // namespace penstock
